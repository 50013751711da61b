"""What you can ask: one use-case per method."""
