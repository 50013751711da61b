"""PostgreSQL: connections, statements, wake-ups between nodes."""
