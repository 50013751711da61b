"""What applications pass and return survives JSON."""
