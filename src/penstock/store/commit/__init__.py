"""Group commit: concurrent requests share one transaction and one fsync."""
