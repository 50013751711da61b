"""The console: web pages on top of the native API, which checks all access."""
