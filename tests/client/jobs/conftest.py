"""An application over each of the three backings, with a clock that goes when it is told to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock import Penstock
from penstock.store.postgres_store import migrate
from penstock.wiring import Broker
from tests.client.jobs.desk import JobDesk
from tests.clocks import ManualClock
from tests.edge.api import a_name
from tests.edge.conftest import some_settings
from tests.edge.live import LiveServer
from tests.support.postgres import PostgresCluster

BACKINGS = ("sqlite", "postgres", "remote")


@pytest.fixture(scope="session")
def job_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    settings = some_settings(tmp_path_factory.mktemp("jobs"))
    with LiveServer(settings, clock=ManualClock(), has_duties=False) as server:
        yield server


@pytest.fixture(scope="session")
def job_database(postgres_cluster: PostgresCluster) -> str:
    postgres_cluster.start()
    url = postgres_cluster.new_database()
    migrate(url)
    return url


@pytest.fixture(params=BACKINGS)
def backing(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def url(backing: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    match backing:
        case "sqlite":
            return f"sqlite:///{tmp_path / 'jobs.db'}"
        case "postgres":
            return str(request.getfixturevalue("job_database"))
    return str(request.getfixturevalue("job_server").url)


@pytest.fixture
def clock(backing: str, request: pytest.FixtureRequest) -> ManualClock:
    if backing != "remote":
        return ManualClock()
    server: LiveServer = request.getfixturevalue("job_server")
    assert isinstance(server.clock, ManualClock)
    return server.clock


@pytest.fixture
def app(url: str, clock: ManualClock) -> Iterator[Penstock]:
    app = Penstock(url, clock=clock)
    yield app
    app.close()


@pytest.fixture
def broker(app: Penstock, backing: str, request: pytest.FixtureRequest) -> Broker:
    """What is behind the application, for a look at what only operators see."""
    if backing == "remote":
        server: LiveServer = request.getfixturevalue("job_server")
        return server.broker
    opened: Any = app._opening.get()
    found: Broker = opened.broker
    return found


@pytest.fixture
def queue() -> str:
    return a_name()


@pytest.fixture
def desk(app: Penstock, clock: ManualClock, queue: str) -> JobDesk:
    return JobDesk(app, clock, queue)
