"""A client class for each resource of the API: the same over HTTP and in process."""
