"""Small complete programs as users write them, run as real processes and killed in the middle."""
