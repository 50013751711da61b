"""The lifecycle of a message, and everything that is decided about one."""
