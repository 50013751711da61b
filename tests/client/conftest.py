"""The same servers as the tests of the edges have."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.client.remote import Remote
from tests.edge import conftest as edge
from tests.edge.live import LiveServer

server = edge.server
clock = edge.clock
make_server = edge.make_server


@pytest.fixture
def remote(server: LiveServer) -> Iterator[Remote]:
    with Remote(server.url) as client:
        yield client
