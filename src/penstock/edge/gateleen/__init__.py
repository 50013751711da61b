"""gateleen's APIs: queued requests, its resources, and its circuits."""
