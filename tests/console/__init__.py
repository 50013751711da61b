"""The console in a real browser, page by page and action by action."""
