"""gateleen's faces: requests that are queued and pushed later, its resources, its circuit API."""
