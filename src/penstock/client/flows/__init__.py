"""Flows and batches, as applications build and follow them."""
