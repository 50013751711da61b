"""Threads and tasks that cannot end unnoticed, and the health of the node they belong to."""
