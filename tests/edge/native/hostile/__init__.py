"""Malicious input: it is rejected without a traceback, and the server keeps running."""
