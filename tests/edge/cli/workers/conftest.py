"""Workers as real processes: on a SQLite file, on PostgreSQL, and on a server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from penstock import Penstock
from tests.edge.cli.workers import application
from tests.edge.cli.workers.driver import WorkerProcess
from tests.edge.live import LiveServer

MakeWorker = Callable[..., WorkerProcess]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run most tests on SQLite; what processes do when others die or wait runs on both stores."""
    if "url" in metafunc.fixturenames:
        is_marked = metafunc.definition.get_closest_marker("both_stores")
        stores = ("sqlite", "postgres") if is_marked else ("sqlite",)
        metafunc.parametrize("url", stores, indirect=True)


@pytest.fixture
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A broker on the worker's store, to inspect it."""
    return _store(request, tmp_path)


@pytest.fixture(params=("sqlite", "postgres", "remote"))
def any_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "remote":
        server: LiveServer = request.getfixturevalue("make_server")()
        return server.url
    return _store(request, tmp_path)


def _store(request: pytest.FixtureRequest, folder: Path) -> str:
    if request.param == "postgres":
        return str(request.getfixturevalue("migrated_url"))
    return f"sqlite:///{folder / 'shop.db'}"


@pytest.fixture
def app(url: str) -> Iterator[Penstock]:
    """The application, as a client of the same store."""
    yield from _opened(url)


@pytest.fixture
def any_app(any_url: str) -> Iterator[Penstock]:
    yield from _opened(any_url)


def _opened(url: str) -> Iterator[Penstock]:
    application.app.use(url)
    yield application.app
    application.app.close()


@pytest.fixture
def make_worker(tmp_path: Path) -> Iterator[MakeWorker]:
    with ExitStack() as stack:

        def make(url: str, *flags: str, **more: Any) -> WorkerProcess:
            worker = WorkerProcess(url, tmp_path / "worker.log", *flags, **more)
            return stack.enter_context(worker)

        yield make
