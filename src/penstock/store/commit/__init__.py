"""Group commit: requests wait for one transaction that serves them all."""
