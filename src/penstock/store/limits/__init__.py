"""Limits per queue and group: concurrency, rates, fair share."""
