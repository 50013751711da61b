"""Notifications and the bus, as applications use them."""
