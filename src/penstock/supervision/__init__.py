"""Supervised threads and tasks, and the health of their node."""
