"""The HTTP server kit: connections, requests, routing.  It knows nothing about queues."""
