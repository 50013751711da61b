"""The files of the tables: which there are, and their compaction."""
