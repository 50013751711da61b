"""A chain as one job of durable steps."""
