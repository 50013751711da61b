"""An application in every environment, with a manual clock; see ways.py."""

from __future__ import annotations

import asyncio
import inspect
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock import Penstock
from penstock.client.remote.server import Remote
from penstock.wiring.broker import Broker
from tests.client.calls import BesideLoop, await_twins, running_loop
from tests.client.ways import (
    CONNECTED,
    CONNECTED_WAYS,
    EVERY_WAY,
    LIMITS,
    NO_STORE,
    WAYS,
    Backend,
    Caller,
    Queues,
    Way,
)
from tests.clocks import ManualClock
from tests.edge import conftest as edge
from tests.edge.api import a_name
from tests.edge.conftest import some_settings
from tests.edge.live import LiveServer
from tests.support.memory import memory_folder
from tests.support.postgres import PostgresCluster

server = edge.server
make_server = edge.make_server


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run every test in every environment that is possible for it."""
    test = metafunc.definition
    if "way" in metafunc.fixturenames:
        rows = [row for mark in test.iter_markers("ways") for row in mark.args]
        if inspect.iscoroutinefunction(metafunc.function):
            rows.append("async test")
        limits = [LIMITS[row] for row in rows]
        chosen: tuple[Way, ...] = WAYS if CONNECTED.isdisjoint(rows) else CONNECTED_WAYS
        if test.get_closest_marker("every_way"):
            chosen = EVERY_WAY
        ways = [way for way in chosen if all(limit.is_possible(way) for limit in limits)]
        assert ways, f"{test.nodeid}: no way is left by {rows}"
        metafunc.parametrize("way", ways, ids=str, indirect=True)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test inside an event loop if its caller is a program on one."""
    way = pyfuncitem.funcargs.get("way")
    if not isinstance(way, Way):
        _check_reason(pyfuncitem)
        return None
    if way.caller is not Caller.LOOP:
        return None
    names = pyfuncitem._fixtureinfo.argnames
    arguments = {name: pyfuncitem.funcargs[name] for name in names}

    async def program() -> None:
        result = pyfuncitem.obj(**arguments)
        if inspect.isawaitable(result):
            await result

    asyncio.run(program())
    return True


def _check_reason(test: pytest.Function) -> None:
    rows = [row for mark in test.iter_markers("no_store") for row in mark.args]
    if not rows or not set(rows) <= set(NO_STORE):
        pytest.fail(
            "this test runs on no way: let it request `app`, or name the reason, a row of NO_STORE "
            'in tests/client/ways.py, with @pytest.mark.no_store("row")',
            pytrace=False,
        )


@pytest.fixture(scope="session")
def callers_loop() -> Iterator[asyncio.AbstractEventLoop]:
    with running_loop() as loop:
        yield loop


@pytest.fixture
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Way:
    chosen: Way = request.param
    if chosen.caller is Caller.AWAIT:
        await_twins(monkeypatch, request.getfixturevalue("callers_loop"))
    return chosen


@pytest.fixture(scope="session")
def job_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    settings = some_settings(tmp_path_factory.mktemp("jobs"))
    with LiveServer(settings, clock=ManualClock(), has_duties=False) as started:
        yield started


@pytest.fixture(scope="session")
def job_database(postgres_cluster: PostgresCluster, migrated_template: str) -> str:
    postgres_cluster.start()
    return postgres_cluster.new_database(template=migrated_template)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder for the test, in memory if the machine has such a place."""
    with tempfile.TemporaryDirectory(prefix="penstock-", dir=memory_folder()) as name:
        yield Path(name)


@pytest.fixture
def url(way: Way, request: pytest.FixtureRequest, folder: Path) -> str:
    match way.backend:
        case Backend.SQLITE:
            # Only the store's own tests need checksums.
            return f"sqlite:///{folder / 'jobs.db'}?checksums=off"
        case Backend.POSTGRES:
            return str(request.getfixturevalue("job_database"))
    return str(request.getfixturevalue("job_server").url)


@pytest.fixture
def clock(way: Way, request: pytest.FixtureRequest) -> ManualClock:
    if way.backend is not Backend.HTTP:
        return ManualClock()
    started: LiveServer = request.getfixturevalue("job_server")
    assert isinstance(started.clock, ManualClock)
    return started.clock


@pytest.fixture
def neighbours(way: Way) -> list[str]:
    """Queues of the same application in which nothing is due."""
    return [a_name(), a_name()] if way.queues is Queues.SEVERAL else []


@pytest.fixture
def app(url: str, clock: ManualClock, neighbours: list[str]) -> Iterator[Penstock]:
    """Not opened yet: the test opens it by its first use, wherever it runs."""
    made = Penstock(url, clock=clock)
    for name in neighbours:
        made.queue(name)
    yield made
    made.close()


@pytest.fixture
def broker(app: Penstock, way: Way, request: pytest.FixtureRequest) -> Broker:
    """The broker behind the application, for what only operators see."""

    def find() -> Broker:
        if way.backend is Backend.HTTP:
            started: LiveServer = request.getfixturevalue("job_server")
            return started.broker
        opened: Any = app.backend
        found: Broker = opened.broker
        return found

    if way.caller is not Caller.LOOP:
        return find()
    proxy: Any = BesideLoop(find)
    operated: Broker = proxy
    return operated


@pytest.fixture
def queue() -> str:
    return a_name()


@pytest.fixture
def remote(server: LiveServer) -> Iterator[Remote]:
    with Remote(server.url) as client:
        yield client
