"""The processes of a worker: the supervisor, its children, and what they say to each other."""
