"""Tests of the message lifecycle."""
