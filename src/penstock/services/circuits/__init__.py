"""Use cases of circuits and breaker settings."""
