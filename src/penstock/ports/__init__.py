"""What we need from the outside: Protocols only."""
