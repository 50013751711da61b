"""Adapters over a store run on the same stores as the store's contract."""

from tests.store.conftest import (
    backend,
    clock,
    driver,
    open_store,
    renewable_database,
    store,
    store_driver,
)

__all__ = [
    "backend",
    "clock",
    "driver",
    "open_store",
    "renewable_database",
    "store",
    "store_driver",
]
