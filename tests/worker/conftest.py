"""Workers on both stores."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from penstock import Penstock
from penstock.worker.worker import JobWorker
from tests.clocks import ManualClock
from tests.store.backends import RenewableDatabase
from tests.store.conftest import backend, clock, open_store, renewable_database, store, store_driver
from tests.worker.driver import PumpDriver

__all__ = ["backend", "clock", "store_driver", "open_store", "renewable_database", "store"]

MakeDriver = Callable[..., PumpDriver]
Start = Callable[..., JobWorker]


@pytest.fixture
def url(backend: str, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    if backend == "sqlite":
        return f"sqlite:///{tmp_path / 'penstock.db'}"
    home: RenewableDatabase = request.getfixturevalue("renewable_database")
    return home.renew()


@pytest.fixture
def app(url: str, clock: ManualClock) -> Iterator[Penstock]:
    app = Penstock(url, clock=clock)
    app.queue("mail")
    yield app
    app.close()


@pytest.fixture
def timed_app(url: str) -> Iterator[Penstock]:
    """An application whose clock runs by itself."""
    app = Penstock(url)
    app.queue("mail")
    yield app
    app.close()


@pytest.fixture
def start(timed_app: Penstock) -> Iterator[Start]:
    """Workers that run in threads until the test ends."""
    started: list[tuple[JobWorker, threading.Thread]] = []

    def start(**options: Any) -> JobWorker:
        worker = timed_app.worker(queues=["mail"], **options)
        thread = threading.Thread(target=worker.run)
        started.append((worker, thread))
        thread.start()
        return worker

    yield start
    for worker, thread in started:
        worker.drain(0)
        thread.join(60)
        assert not thread.is_alive()


@pytest.fixture
def make_driver(app: Penstock, clock: ManualClock) -> Iterator[MakeDriver]:
    with ExitStack() as stack:

        def make(**order: Any) -> PumpDriver:
            return stack.enter_context(closing(PumpDriver(app, clock, **order)))

        yield make
