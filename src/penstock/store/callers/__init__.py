"""Sends and acts inside a caller's own transaction."""
