"""Group commit: batches, reads beside them, timeouts, outages."""
