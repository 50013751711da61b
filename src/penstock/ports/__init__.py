"""Protocols of everything outside the core."""
