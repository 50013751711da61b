"""The health, time and damage of a store, and findings of check-ups."""
