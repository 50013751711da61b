"""The worker: claims work, has it done in slots, keeps its leases, and tells what became of it."""
