"""AweQ's API: its document as tests, what was wrong with it, and what it must not do."""
