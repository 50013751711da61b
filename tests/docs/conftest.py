"""The documents are tried against a server as a process of its own."""

from tests.edge.conftest import make_process, make_server

__all__ = ["make_process", "make_server"]
