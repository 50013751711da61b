"""What pushes deliveries: which queue is next, what is sent, and what becomes of it."""
