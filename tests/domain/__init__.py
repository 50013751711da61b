"""The pure rules: no store, no clock, no chance."""
