"""Processes that share one file, all of them ended with the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.store.sql_store import SqlStore, open_sqlite
from tests.store.processes.peer import Peer


@pytest.fixture
def backend() -> str:
    return "sqlite"  # PostgreSQL's nodes have tests of their own


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def start(folder: Path) -> Iterator[Callable[[], Peer]]:
    peers: list[Peer] = []

    def one() -> Peer:
        peers.append(Peer(folder))
        return peers[-1]

    yield one
    for peer in peers:
        peer.end()


@pytest.fixture
def open_another(folder: Path) -> Iterator[Callable[..., SqlStore]]:
    """Stores of this process that know nothing of each other, as those of several would."""
    stores: list[SqlStore] = []

    def one(**options: Any) -> SqlStore:
        stores.append(open_sqlite(folder / "penstock.db", **options))
        return stores[-1]

    yield one
    for store in stores:
        store.close()
