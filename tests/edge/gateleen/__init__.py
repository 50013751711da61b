"""gateleen's APIs over HTTP: queued requests, resources, circuits."""
