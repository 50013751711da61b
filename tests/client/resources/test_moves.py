"""Moves through both channels of a client: the same calls, the same records."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.client.channel import Channel
from penstock.client.local.channel import LocalChannel
from penstock.client.remote.transport import Transport
from penstock.client.resources.queues import MoveClient
from penstock.domain.errors import MoveNotFound, MoveNotRunning, QueueNotFound
from penstock.domain.message.move_task import MoveState
from penstock.domain.queue.queue import QueueSettings
from penstock.operations.queues import MoveOperations
from tests.clocks import NOON, ManualClock
from tests.edge.conftest import some_settings
from tests.edge.live import LiveServer

pytestmark = pytest.mark.no_store("server")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LiveServer]:
    settings = some_settings(tmp_path / "data")
    with LiveServer(settings, clock=ManualClock(), has_duties=False) as started:
        for name in ("mail", "mail.dead"):
            started.broker.queues.put(name, QueueSettings()).result()
        yield started


@pytest.fixture(params=["over HTTP", "in process"])
def moves(request: pytest.FixtureRequest, server: LiveServer) -> MoveClient:
    channel: Channel
    if request.param == "over HTTP":
        channel = Transport(server.url)
    else:
        channel = LocalChannel(MoveOperations(server.broker.moves).handlers())
    return MoveClient(channel)


def test_a_move_is_started_found_and_cancelled(moves: MoveClient) -> None:
    started = moves.start("mail.dead", to="mail", max_per_second=5)

    assert (started.queue, started.to, started.max_per_second) == ("mail.dead", "mail", 5)
    assert started.state is MoveState.RUNNING
    assert started.started_at.timestamp() * 1000 == NOON
    assert moves.get(started.id) == started
    assert moves.list("mail.dead", limit=1) == [started]
    assert moves.cancel(started.id).id == started.id


def test_errors_are_those_of_the_broker(moves: MoveClient) -> None:
    with pytest.raises(QueueNotFound):
        moves.start("nowhere")
    with pytest.raises(MoveNotFound):
        moves.get("00000000-0000-7000-8000-000000000000")
    started = moves.start("mail.dead")
    moves.cancel(started.id)
    with pytest.raises(MoveNotRunning):
        moves.cancel(started.id)
