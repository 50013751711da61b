"""Replica managers: they start and stop the workers of a fleet, or leave that to others."""
