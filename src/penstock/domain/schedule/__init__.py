"""Schedules of recurring work."""
