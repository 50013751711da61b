"""The SNS API, on topics and subscriptions."""
