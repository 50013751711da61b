"""The processes of a worker: the supervisor, its children, and the messages between them."""
