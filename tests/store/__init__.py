"""The store: its contract on every backend, its writer, its migrations."""
