"""The same chain and the same group, written for each framework."""
