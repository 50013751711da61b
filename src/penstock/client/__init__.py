"""The Python client: the API that applications use."""
