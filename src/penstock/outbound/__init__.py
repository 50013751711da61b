"""How we reach out: clock and dice."""
