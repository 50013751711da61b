"""One broker, and both channels to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.client.channel import Channel
from penstock.client.local.channel import LocalChannel
from penstock.client.remote.transport import Transport
from penstock.operations.call import Handlers
from tests.clocks import ManualClock
from tests.edge.conftest import some_settings
from tests.edge.live import LiveServer

Connect = Callable[[Handlers], Channel]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LiveServer]:
    settings = some_settings(tmp_path / "data")
    with LiveServer(settings, clock=ManualClock(), has_duties=False) as started:
        yield started


@pytest.fixture(params=["over HTTP", "in process"])
def connect(request: pytest.FixtureRequest, server: LiveServer) -> Connect:
    """How a client reaches the broker's handlers."""
    if request.param == "over HTTP":
        return lambda handlers: Transport(server.url)
    return LocalChannel
