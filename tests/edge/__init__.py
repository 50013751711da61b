"""Tests from outside: a running server, spoken to over HTTP."""
