"""A store opened in the application's own process."""
