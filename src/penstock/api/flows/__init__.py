"""Flows: jobs that wait for each other, and batches of jobs with callbacks."""
