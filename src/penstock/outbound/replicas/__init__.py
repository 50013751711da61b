"""Replica managers: start and stop the workers of a fleet, or leave that to other systems."""
