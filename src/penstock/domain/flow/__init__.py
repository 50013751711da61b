"""Flows: messages that wait for each other, and sets of messages with callbacks."""
