"""Penstock: a durable work-queue platform.  Everything is a message in a queue."""

__version__ = "0.1.0"
