"""AweQ's HTTP API, as its document shows it."""
