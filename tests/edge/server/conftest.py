"""The server that requires keys, and its clients, are those of the native API."""

from tests.edge.native.conftest import guarded, let_in

__all__ = ["guarded", "let_in"]
