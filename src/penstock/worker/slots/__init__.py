"""Where jobs run: threads, an event loop, and sandboxes that can be killed."""
