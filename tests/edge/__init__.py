"""Black-box tests: a running server, called over HTTP."""
