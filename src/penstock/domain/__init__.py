"""What is true: the pure rules, with time and chance passed in as values."""
