"""The native HTTP API, operation by operation."""
