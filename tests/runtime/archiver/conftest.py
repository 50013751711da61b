"""An archiver over a store of each backend, and a lake in a folder of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runtime.archiver.rig import Rig
from tests.store.conftest import backend, clock, desk, open_store, postgres_home, store
from tests.store.desk import Desk

__all__ = ["backend", "clock", "desk", "open_store", "postgres_home", "store"]


@pytest.fixture
def rig(desk: Desk, tmp_path: Path) -> Rig:
    return Rig(desk, tmp_path / "lake")
