"""The HTTP server kit: connections, requests, routing.  It does not know queues."""
