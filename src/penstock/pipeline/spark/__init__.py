"""Spark itself: its Java, errors, progress and frames."""
