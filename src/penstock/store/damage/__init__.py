"""Damage to SQLite files: found, named, and salvaged from."""
