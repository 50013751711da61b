"""Adapters to the outside: clock, randomness, HTTP, files, load sources and replica managers."""
