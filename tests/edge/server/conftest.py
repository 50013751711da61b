"""The server that requires keys, and its clients, are those of the native API."""

from tests.edge.native.conftest import let_in, server_with_keys

__all__ = ["server_with_keys", "let_in"]
