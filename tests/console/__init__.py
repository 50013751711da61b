"""The console as people meet it: in a real browser, page by page and action by action."""
