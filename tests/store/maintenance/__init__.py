"""Migrations, backups, promotion to PostgreSQL."""
