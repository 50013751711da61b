"""Services work on a store, so they are tried on the same ones as the store's contract."""

import pytest

from penstock.domain.queue.queue import Queue
from tests.services.floor import Floor
from tests.store.conftest import backend, clock, desk, open_store, postgres_home, store
from tests.store.desk import Desk

__all__ = ["backend", "clock", "desk", "open_store", "postgres_home", "store"]


@pytest.fixture
def floor(desk: Desk) -> Floor:
    made = Floor(desk)
    made.begin()
    return made


@pytest.fixture
def queue(desk: Desk) -> Queue:
    return desk.queue("q1")


@pytest.fixture
def other(desk: Desk) -> Queue:
    return desk.queue("q2")
