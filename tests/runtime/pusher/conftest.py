import pytest

from tests.runtime.pusher.rig import Rig
from tests.store.conftest import backend, clock, desk, open_store, postgres_home, store
from tests.store.desk import Desk

__all__ = ["backend", "clock", "desk", "open_store", "postgres_home", "store"]


@pytest.fixture
def rig(desk: Desk) -> Rig:
    return Rig(desk)
