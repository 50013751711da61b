"""Commands for jobs, workers and fleets."""
