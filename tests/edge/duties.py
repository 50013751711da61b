"""Run the duties of a server when a test says so."""

from __future__ import annotations

from penstock.runtime.duties import Mover
from penstock.runtime.minute_counters import Sampler
from tests.clocks import ManualClock
from tests.edge.live import LiveServer


def sample(server: LiveServer) -> None:
    Sampler(server.broker.store, retention_days=90).sample(server.clock.now())


def advance_moves(server: LiveServer, clock: ManualClock) -> None:
    """Advance the clock by a second and step the move tasks."""
    Mover(server.broker.moves, every_ms=500).tick(clock.advance(seconds=1))
