"""Damage to SQLite files: detection, diagnosis and salvage."""
