"""Use cases: one method each."""
