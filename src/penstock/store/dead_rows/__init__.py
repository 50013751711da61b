"""Avoids reading dead rows that an old transaction keeps in the database."""
