"""Commands for queues, messages, topics, routes and circuits."""
