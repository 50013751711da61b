"""Clients of AweQ on the servers that all tests share, as if AweQ had not been used there yet."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress

import pytest

from penstock.domain.errors import QueueNotFound
from tests.edge.aweq.client import AweqClient
from tests.edge.live import LiveServer

MakeClient = Callable[..., AweqClient]


@pytest.fixture
def make_client(server: LiveServer) -> Iterator[MakeClient]:
    with suppress(QueueNotFound):
        server.broker.queues.remove("aweq", force=True).result()
    with ExitStack() as stack:

        def make(consumer: str = "", *, address: str = "127.0.0.1") -> AweqClient:
            client = AweqClient(server.url, consumer=consumer, address=address)
            return stack.enter_context(closing(client))

        yield make


@pytest.fixture
def aweq(make_client: MakeClient) -> AweqClient:
    return make_client()
