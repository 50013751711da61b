"""External workers on the shared servers, with an empty queue of tasks."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest

from penstock.domain.errors import QueueNotFound
from penstock.runtime.worker_duties import WorkerReaper
from tests.clocks import ManualClock
from tests.edge.api import Api
from tests.edge.izenda.client import IzendaClient
from tests.edge.live import LiveServer

Reap = Callable[[], object]


@pytest.fixture
def izenda(server: LiveServer, api: Api) -> IzendaClient:
    with suppress(QueueNotFound):
        server.broker.queues.remove("tasks", force=True).result()
    return IzendaClient(api)


@pytest.fixture
def reap(server: LiveServer, clock: ManualClock) -> Reap:
    """Run the reaper's duty now, as the server does."""
    reaper = WorkerReaper(server.broker.workers, every_ms=1_000)
    return lambda: reaper.tick(clock.now())
