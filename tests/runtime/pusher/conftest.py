import pytest

from tests.runtime.pusher.driver import PusherDriver
from tests.store.conftest import backend, clock, open_store, renewable_database, store, store_driver
from tests.store.driver import StoreDriver

__all__ = ["backend", "clock", "store_driver", "open_store", "renewable_database", "store"]


@pytest.fixture
def driver(store_driver: StoreDriver) -> PusherDriver:
    return PusherDriver(store_driver)
