"""SQL on the lake and the computed tables, with DuckDB in a process of its own."""
