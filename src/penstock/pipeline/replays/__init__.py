"""Replays history through the functions that the broker itself uses."""
