"""Applications on both stores, with a clock that stands still and a worker that is told to go."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock import Penstock
from tests.client.bus.hand_worker import HandWorker
from tests.clocks import ManualClock
from tests.store import conftest as stores
from tests.store.backends import BACKENDS, PostgresHome

postgres_home = stores.postgres_home


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(params=BACKENDS)
def url(request: pytest.FixtureRequest) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{request.getfixturevalue('tmp_path')}/penstock.db?checksums=off"
    home: PostgresHome = request.getfixturevalue("postgres_home")
    return home.renew()


@pytest.fixture
def app(url: str, clock: ManualClock) -> Iterator[Penstock]:
    with Penstock(url, clock=clock) as opened:
        yield opened


@pytest.fixture
def worker(app: Penstock, clock: ManualClock) -> HandWorker:
    return HandWorker(app, clock)
