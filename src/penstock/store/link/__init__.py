"""The connection between fronts and the writer of a node."""
