"""What changes messages: send, claim, acts on leases, transfers."""
