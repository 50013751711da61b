"""The worker: claims jobs, runs them in slots, extends their leases, and reports how they ended."""
