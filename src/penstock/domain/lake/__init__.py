"""The lake that the broker writes, and the tables that the pipeline computes."""
