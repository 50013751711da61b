"""Services work on a store, so they are tried on the same ones as the store's contract."""

import pytest

from penstock.domain.queue.queue import Queue
from tests.services.driver import CircuitDriver
from tests.store.conftest import backend, clock, open_store, renewable_database, store, store_driver
from tests.store.driver import StoreDriver

__all__ = ["backend", "clock", "store_driver", "open_store", "renewable_database", "store"]


@pytest.fixture
def driver(store_driver: StoreDriver) -> CircuitDriver:
    made = CircuitDriver(store_driver)
    made.begin()
    return made


@pytest.fixture
def queue(store_driver: StoreDriver) -> Queue:
    return store_driver.queue("q1")


@pytest.fixture
def other(store_driver: StoreDriver) -> Queue:
    return store_driver.queue("q2")
