"""The client of a store in its own process."""
