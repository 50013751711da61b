"""Izenda's protocol for workers of other programs, as its document shows it."""
