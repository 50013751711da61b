"""The console: pages for people, over the native API.  What they may do, that API decides."""
