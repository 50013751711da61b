"""Stores that fail at a given place, in the middle of a transaction."""

from __future__ import annotations

from typing import Any

from penstock.domain.errors import StoreUnavailable
from penstock.ports.store import Session


class FailingStore:
    """As the store behind it, but `noun.verb` of its writes raises while `is_broken`."""

    def __init__(self, store: Any, noun: str, verb: str) -> None:
        self._store = store
        self._where = noun, verb
        self.is_broken = True
        self.writes = 0

    def write(self, what: Any) -> Any:
        self.writes += 1
        return self._store.write(lambda session: what(self._broken(session)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def _broken(self, session: Session) -> Any:
        return Broken(session, *self._where) if self.is_broken else session


class Broken:
    def __init__(self, whole: Any, *where: str) -> None:
        self._whole = whole
        self._where = where

    def __getattr__(self, name: str) -> Any:
        part = getattr(self._whole, name)
        if name != self._where[0]:
            return part
        return Broken(part, *self._where[1:]) if self._where[1:] else _fail


def _fail(*_: object, **__: object) -> None:
    raise StoreUnavailable("the disk is gone")
