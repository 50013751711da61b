"""A database inside of a transaction that is not ours.

It never begins, commits or rolls back what is not ours.  A savepoint stands around our statements:
`enter` sets it, `commit` gives it up, `rollback` goes back to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from penstock.store.database import Database


class CallerDatabase(Database, Protocol):
    def enter(self) -> int:
        """Set the savepoint, or raise InvalidRequest if this is no transaction for us.

        Returns the row of counters to add to.
        """
        ...

    def tell(self, woken: Mapping[int, int]) -> None:
        """What became ready, to be heard of when the caller commits."""
        ...
