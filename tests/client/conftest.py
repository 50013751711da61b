"""An application in every environment, with a manual clock; see environments.py."""

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
from tests.client.environments import (
    CONNECTED,
    CONNECTED_ENVIRONMENTS,
    ENVIRONMENTS,
    EVERY_ENVIRONMENT,
    LIMITS,
    NO_STORE,
    Backend,
    Caller,
    Environment,
    Queues,
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
    if "environment" in metafunc.fixturenames:
        rows = [row for mark in test.iter_markers("environments") for row in mark.args]
        if inspect.iscoroutinefunction(metafunc.function):
            rows.append("async test")
        limits = [LIMITS[row] for row in rows]
        chosen: tuple[Environment, ...] = ENVIRONMENTS
        if not CONNECTED.isdisjoint(rows):
            chosen = CONNECTED_ENVIRONMENTS
        if test.get_closest_marker("every_environment"):
            chosen = EVERY_ENVIRONMENT
        possible = [one for one in chosen if all(limit.is_possible(one) for limit in limits)]
        assert possible, f"{test.nodeid}: no environment is left by {rows}"
        metafunc.parametrize("environment", possible, ids=str, indirect=True)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test inside an event loop if its caller is a program on one."""
    environment = pyfuncitem.funcargs.get("environment")
    if not isinstance(environment, Environment):
        _check_reason(pyfuncitem)
        return None
    if environment.caller is not Caller.LOOP:
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
            "this test runs in no environment: let it request `app`, or name the reason, a row of "
            'NO_STORE in tests/client/environments.py, with @pytest.mark.no_store("row")',
            pytrace=False,
        )


@pytest.fixture(scope="session")
def callers_loop() -> Iterator[asyncio.AbstractEventLoop]:
    with running_loop() as loop:
        yield loop


@pytest.fixture
def environment(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Environment:
    chosen: Environment = request.param
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
def url(environment: Environment, request: pytest.FixtureRequest, folder: Path) -> str:
    match environment.backend:
        case Backend.SQLITE:
            # Only the store's own tests need checksums.
            return f"sqlite:///{folder / 'jobs.db'}?checksums=off"
        case Backend.POSTGRES:
            return str(request.getfixturevalue("job_database"))
    return str(request.getfixturevalue("job_server").url)


@pytest.fixture
def clock(environment: Environment, request: pytest.FixtureRequest) -> ManualClock:
    if environment.backend is not Backend.HTTP:
        return ManualClock()
    started: LiveServer = request.getfixturevalue("job_server")
    assert isinstance(started.clock, ManualClock)
    return started.clock


@pytest.fixture
def neighbours(environment: Environment) -> list[str]:
    """Queues of the same application in which nothing is due."""
    return [a_name(), a_name()] if environment.queues is Queues.SEVERAL else []


@pytest.fixture
def app(url: str, clock: ManualClock, neighbours: list[str]) -> Iterator[Penstock]:
    """Not opened yet: the test opens it by its first use, wherever it runs."""
    made = Penstock(url, clock=clock)
    for name in neighbours:
        made.queue(name)
    yield made
    made.close()


@pytest.fixture
def broker(app: Penstock, environment: Environment, request: pytest.FixtureRequest) -> Broker:
    """The broker behind the application, for what only operators see."""

    def find() -> Broker:
        if environment.backend is Backend.HTTP:
            started: LiveServer = request.getfixturevalue("job_server")
            return started.broker
        opened: Any = app.backend
        found: Broker = opened.broker
        return found

    if environment.caller is not Caller.LOOP:
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
