"""Nouns as clients call them, over HTTP and in process."""
