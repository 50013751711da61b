"""Duties work on a store, so they are tried on the same ones as the store's contract."""

from tests.store.conftest import backend, clock, desk, open_store, postgres_home, store

__all__ = ["backend", "clock", "desk", "open_store", "postgres_home", "store"]
