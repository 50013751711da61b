"""The nouns of the store port, each with its queries."""
