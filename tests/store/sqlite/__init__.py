"""What only SQLite has: its log, its plans."""
