"""Durable parts of jobs: steps, waits and signals."""
