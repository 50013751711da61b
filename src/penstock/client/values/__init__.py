"""What applications pass and return, as JSON by the annotations of their functions."""
