"""The files of the tables: which there are, and putting small ones together."""
