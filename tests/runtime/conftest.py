"""Duties work on a store, so they are tried on the same ones as the store's contract."""

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
