"""Samples that are written down when a test says so, and not by the server's own duty."""

from __future__ import annotations

import pytest

from penstock.domain.limits import DAY
from penstock.ports.clock import Clock
from penstock.runtime.duties import Every
from penstock.runtime.sampler import NAME, Sampler
from penstock.settings import Settings
from tests.edge.live import LiveServer


def unsampled(settings: Settings, clock: Clock) -> LiveServer:
    """Its own sampler might still be at a minute that a test has left."""
    with pytest.MonkeyPatch.context() as patch:
        idle = Every(NAME, DAY, lambda: None)
        patch.setattr("penstock.wiring.Sampler", lambda *_, **__: idle)
        return LiveServer(settings, clock=clock)


def sample(server: LiveServer) -> None:
    """What the duty does by itself, here and now."""
    Sampler(server.broker.store, retention_days=90).sample(server.clock.now())
