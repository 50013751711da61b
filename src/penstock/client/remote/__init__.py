"""A remote server, used through the native API over HTTP."""
