"""An archiver over a store of each backend, and a lake in a folder of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runtime.archiver.driver import ArchiverDriver
from tests.store.conftest import backend, clock, open_store, renewable_database, store, store_driver
from tests.store.driver import StoreDriver

__all__ = ["backend", "clock", "store_driver", "open_store", "renewable_database", "store"]


@pytest.fixture
def driver(store_driver: StoreDriver, tmp_path: Path) -> ArchiverDriver:
    return ArchiverDriver(store_driver, tmp_path / "lake")
