"""Queues: settings, counters, limits."""
