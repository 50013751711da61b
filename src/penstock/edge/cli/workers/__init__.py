"""Commands about jobs, workers and fleets."""
