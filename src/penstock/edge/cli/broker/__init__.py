"""Commands about queues, messages, topics, routes and circuits."""
