"""Processes that share one file, all of them ended with the test."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from penstock.store.store import SqlStore, open_sqlite
from tests.store.processes.peer import Peer


@pytest.fixture
def backend() -> str:
    return "sqlite"  # PostgreSQL's nodes have tests of their own


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture(params=[True, False], ids=["with checksums", "plain"])
def has_checksums(request: pytest.FixtureRequest) -> bool:
    """False: a file that an application may use as well, through Python's sqlite3."""
    return bool(request.param)


@pytest.fixture
def start(folder: Path, has_checksums: bool) -> Iterator[Callable[[], Peer]]:
    peers: list[Peer] = []

    def one() -> Peer:
        peers.append(Peer(folder, has_checksums=has_checksums))
        return peers[-1]

    yield one
    for peer in peers:
        peer.end()


@pytest.fixture
def open_another(folder: Path, has_checksums: bool) -> Iterator[Callable[..., SqlStore]]:
    """Stores in this process that are independent, like those of several processes."""
    stores: list[SqlStore] = []

    def one(**options: Any) -> SqlStore:
        stores.append(open_sqlite(folder / "penstock.db", checksums=has_checksums, **options))
        return stores[-1]

    yield one
    for store in stores:
        store.close()


@pytest.fixture
def stranger(folder: Path, has_checksums: bool) -> Iterator[Callable[[], Any]]:
    """Connections that bypass the write lock, with the copy of SQLite that may open the file."""
    made: list[Any] = []

    def one() -> Any:
        path = folder / "penstock.db"
        if has_checksums:
            made.append(apsw.Connection(str(path)))
        else:
            made.append(sqlite3.connect(path, isolation_level=None, timeout=30))
        return made[-1]

    yield one
    for connection in made:
        connection.close()
