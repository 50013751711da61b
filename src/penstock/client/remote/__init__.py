"""A server elsewhere: the native API over HTTP."""
