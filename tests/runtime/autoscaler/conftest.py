"""The autoscaler works on a store, so it is tried on the same ones as the store's contract."""

import pytest

from tests.runtime.autoscaler.driver import AutoscalerDriver
from tests.store.conftest import backend, clock, open_store, renewable_database, store, store_driver
from tests.store.driver import StoreDriver

__all__ = ["backend", "clock", "store_driver", "open_store", "renewable_database", "store"]


@pytest.fixture
def driver(store_driver: StoreDriver) -> AutoscalerDriver:
    return AutoscalerDriver(store_driver)
