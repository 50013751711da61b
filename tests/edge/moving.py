"""Move tasks that advance when a test says so, and not by the server's own duty."""

from __future__ import annotations

import pytest

from penstock.runtime.duties import Mover
from penstock.services.moves import Moves
from tests.clocks import ManualClock
from tests.edge.live import LiveServer


@pytest.fixture
def _no_mover(server: LiveServer, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_from_moving(server, monkeypatch)


def keep_from_moving(server: LiveServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server's own duty would advance move tasks while a test still looks at them."""
    store = server.broker.store
    monkeypatch.setattr(server.broker.moves, "active", lambda: store.read(lambda _: []))


def advance(server: LiveServer, clock: ManualClock) -> None:
    """A second passes, and the duty takes its steps."""
    moves = Moves(server.broker.store, clock, server.broker.dice)
    Mover(moves, every_ms=500).tick(clock.advance(seconds=1))
