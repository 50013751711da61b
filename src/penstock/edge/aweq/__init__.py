"""AweQ's HTTP API."""
