"""How many workers a fleet needs, within its limits."""
