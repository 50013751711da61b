"""The store port on SQLite and PostgreSQL."""
