"""The pure rules: time and randomness are passed in as values."""
