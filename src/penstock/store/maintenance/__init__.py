"""Migrations, backups, promotion to PostgreSQL, checks."""
