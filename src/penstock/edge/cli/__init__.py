"""The command line: parse, ask a server or the store, print."""
