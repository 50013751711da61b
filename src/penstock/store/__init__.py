"""Where it is kept: SQLite and PostgreSQL behind one port."""
