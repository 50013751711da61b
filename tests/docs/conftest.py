"""The docs are tested against a server that runs as a separate process."""

from tests.edge.conftest import make_process, make_server

__all__ = ["make_process", "make_server"]
