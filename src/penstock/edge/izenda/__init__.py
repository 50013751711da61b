"""Izenda's protocol for external workers."""
