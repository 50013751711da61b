"""Notifications, topics and events as applications use them."""
