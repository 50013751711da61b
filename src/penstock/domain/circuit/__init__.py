"""Circuit breakers: states, outcome windows, settings."""
