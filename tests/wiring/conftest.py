"""Adapters over a store run on the same stores as the store's contract."""

from tests.store.conftest import backend, clock, desk, open_store, postgres_home, store

__all__ = ["backend", "clock", "desk", "open_store", "postgres_home", "store"]
