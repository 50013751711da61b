"""The autoscaler works on a store, so it is tried on the same ones as the store's contract."""

import pytest

from tests.runtime.autoscaler.yard import Yard
from tests.store.conftest import backend, clock, desk, open_store, postgres_home, store
from tests.store.desk import Desk

__all__ = ["backend", "clock", "desk", "open_store", "postgres_home", "store"]


@pytest.fixture
def yard(desk: Desk) -> Yard:
    return Yard(desk)
