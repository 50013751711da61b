"""The documents are tried against a server as a process of its own."""

from tests.edge.conftest import make_process

__all__ = ["make_process"]
