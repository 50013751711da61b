"""Definitions as code: a file says what exists on a broker, and is compared and applied."""
