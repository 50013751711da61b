"""A server whose clock goes when it is told to, and clients of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import pytest

from tests.clocks import ManualClock
from tests.edge.aweq.client import AweqClient
from tests.edge.conftest import MakeServer
from tests.edge.live import LiveServer

MakeClient = Callable[..., AweqClient]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def server(make_server: MakeServer, clock: ManualClock) -> LiveServer:
    return make_server(clock=clock)


@pytest.fixture
def make_client(server: LiveServer) -> Iterator[MakeClient]:
    with ExitStack() as stack:

        def make(consumer: str = "", *, address: str = "127.0.0.1") -> AweqClient:
            client = AweqClient(server.url, consumer=consumer, address=address)
            return stack.enter_context(closing(client))

        yield make


@pytest.fixture
def aweq(make_client: MakeClient) -> AweqClient:
    return make_client()
