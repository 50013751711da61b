"""The command line: parses arguments, calls a server or opens the store, prints the result."""
