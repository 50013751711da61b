"""The entities of the store port (queues, messages, topics, …), each with its queries."""
