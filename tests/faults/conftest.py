"""Fixtures of the fault tests: servers that end with the test, on the stores it names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.faults.figures import figure
from tests.faults.server import Server

TIMEOUT_S = figure(240, 2400)

MakeServer = Callable[..., Server]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith("tests/faults/"):
            item.add_marker(pytest.mark.timeout(TIMEOUT_S))


@pytest.fixture
def tmp_path(disk_path: Path) -> Path:
    """In memory, where other tests keep their files, no kill interrupts a sync."""
    return disk_path


@pytest.fixture
def make_server(tmp_path: Path) -> Iterator[MakeServer]:
    """Makes servers, not yet started; all are gone when the test is."""
    with ExitStack() as stack:

        def make(store: Path | str | None = None, *, processes: int = 1, **options: Any) -> Server:
            number = len(list(tmp_path.glob("log-*")))
            log = tmp_path / f"log-{number}"
            log.touch()
            made = Server(store or tmp_path / "data", log, options=options, processes=processes)
            return stack.enter_context(made)

        yield make


@pytest.fixture
def database(migrated_url: str) -> str:
    """A PostgreSQL database of the test's own, with our schema in it."""
    return migrated_url


@pytest.fixture(params=["sqlite", "postgres"])
def server(request: pytest.FixtureRequest, make_server: MakeServer) -> Server:
    """A started broker, once on each store."""
    if request.param == "sqlite":
        made = make_server()
    else:
        made = make_server(request.getfixturevalue("database"))
    made.start()
    return made
