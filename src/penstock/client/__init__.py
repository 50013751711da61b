"""How programs use us."""
