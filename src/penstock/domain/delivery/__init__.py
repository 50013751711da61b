"""Deliveries: HTTP requests in a queue, their routes, and the addresses they may reach."""
