"""SQLite: connections, the log, and the write lock between processes."""
