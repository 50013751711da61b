"""The native HTTP API, operation by operation and connection by connection."""
