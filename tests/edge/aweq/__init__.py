"""AweQ's API: its document as tests, its fixed defects, and its safety."""
