"""Commands for operators: serve, back up, migrate, check, manage keys."""
