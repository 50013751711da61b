"""Finds the number up to which all rows are visible, although numbers precede commits.

On a store with several writers, a row may become visible after one with a greater number: its
transaction took its number earlier and committed later.  A reader that continues from the greatest
number seen would never see it.  So a look reads the greatest numbers, and then the transactions
that are writing.  When all of these have ended, no row can appear below the numbers of that look.
With a single writer there are no such transactions, and every look is final at once.  Pure.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Generic, TypeVar

import msgspec

Cut = TypeVar("Cut")


class _Pending(msgspec.Struct, Generic[Cut]):
    cut: Cut
    writers: Set[str]  # those that have not ended


class FinalCuts(Generic[Cut]):
    """Waits for two looks at a time: the oldest, and then the latest."""

    def __init__(self) -> None:
        self._pending: list[_Pending[Cut]] = []

    def look(self, cut: Cut, writers: Set[str]) -> Cut | None:
        """Return the latest cut that became final with this look, if any."""
        final = None
        waiting = []
        for earlier in self._pending:
            earlier.writers = earlier.writers & writers
            if earlier.writers:
                waiting.append(earlier)
            else:
                final = earlier.cut
        if not writers:
            self._pending = []
            return cut
        latest = _Pending(cut, writers)
        self._pending = [*waiting[:1], latest]
        return final
