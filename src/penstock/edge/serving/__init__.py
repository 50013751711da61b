"""Serving: builds the broker and its HTTP server, runs them, and reports that they are ready."""
