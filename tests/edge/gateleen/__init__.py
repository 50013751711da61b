"""gateleen's faces, from outside: queued requests, resources, the circuit API."""
