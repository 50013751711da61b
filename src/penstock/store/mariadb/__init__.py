"""MariaDB: connections, statements, wake-ups between nodes."""
