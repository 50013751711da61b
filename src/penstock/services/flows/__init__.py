"""Flows: what callers do with them, and how operators see them."""
