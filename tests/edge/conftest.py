"""Servers for the black-box tests.  Most tests share one per backend, each with its own queues."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock.ports.clock import Clock
from penstock.settings import Settings
from penstock.wiring.broker import migrate
from tests.clocks import ManualClock
from tests.edge.api import Api
from tests.edge.live import LiveServer
from tests.edge.process import ServerProcess

BACKENDS = ("sqlite", "postgres")

# Only a wake-up or a due date can answer a waiting claim in time: polling comes too late.
NEVER_LOOKS_IN_PASSING = {"wakeups": {"poll_ms": 60_000}}
NEVER_PUSHES = {"push": {"deliver": False}}  # queued messages stay there for inspection
AS_AWEQ_DOES = {"aweq": {"allow_origin": "*"}}

MakeServer = Callable[..., LiveServer]
MakeProcess = Callable[..., ServerProcess]
InBackground = Callable[..., Future[Any]]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run most tests on SQLite: the contract suite covers what a store does on both.

    Tests of locks, waits and wake-ups, and of input that one database accepts and the other does
    not, are marked `both_stores`.
    """
    stores = BACKENDS if metafunc.definition.get_closest_marker("both_stores") else BACKENDS[:1]
    if "server" in metafunc.fixturenames and not hasattr(metafunc.module, "server"):
        metafunc.parametrize("server", stores, indirect=True, scope="session")


@pytest.fixture(scope="session")
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LiveServer]:
    """One server per backend for all tests; its clock stands still until a test advances it.

    It runs no duties, which might interfere between two steps of a test.
    """
    settings: dict[str, Any] = {**NEVER_LOOKS_IN_PASSING, **NEVER_PUSHES, **AS_AWEQ_DOES}
    backend = getattr(request, "param", "sqlite")
    if backend == "postgres":
        cluster = request.getfixturevalue("postgres_cluster")
        cluster.start()
        settings["store"] = {"url": cluster.new_database()}
    chosen = some_settings(tmp_path_factory.mktemp(f"server-{backend}"), **settings)
    migrate(chosen)
    with LiveServer(chosen, clock=ManualClock(), has_duties=False) as started:
        yield started


@pytest.fixture
def clock(server: LiveServer) -> ManualClock:
    assert isinstance(server.clock, ManualClock)
    return server.clock


@pytest.fixture(scope="session")
def api(server: LiveServer) -> Iterator[Api]:
    client = Api(server.url)
    yield client
    client.close()


@pytest.fixture
def make_server(tmp_path: Path) -> Iterator[MakeServer]:
    """Servers with their own settings, on SQLite: make_server(server={"max_connections": 3})."""
    with ExitStack() as stack:

        def make(
            *, data: Path | None = None, clock: Clock | None = None, **settings: Any
        ) -> LiveServer:
            made = LiveServer(some_settings(data or tmp_path / "data", **settings), clock=clock)
            return stack.enter_context(made)

        yield make


@pytest.fixture
def make_process(tmp_path: Path) -> Iterator[MakeProcess]:
    """Servers in their own processes: make_process(server_idle_timeout_ms=500)."""
    with ExitStack() as stack:

        def make(**settings: object) -> ServerProcess:
            return stack.enter_context(ServerProcess(tmp_path / "data", settings))

        yield make


@pytest.fixture
def in_background() -> Iterator[InBackground]:
    """Run calls whose results a test checks later."""
    with ThreadPoolExecutor(32) as pool:
        yield pool.submit


def some_settings(data: Path, **settings: Any) -> Settings:
    server = {"port": 0, **settings.pop("server", {})}
    return msgspec.convert({"data": str(data), "server": server, **settings}, Settings)
