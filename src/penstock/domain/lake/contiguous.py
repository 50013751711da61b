"""Up to which number everything is there, where numbers are taken before they are committed.

On a store with several writers a row may appear behind one with a greater number: its transaction
took the number first and was committed later.  Whoever reads on from the greatest number seen would
miss it for ever.  So a look tells two things, in this order: the greatest numbers, and who is
writing at that moment.  When all of those have ended, nothing can appear below the numbers of that
look any more.  Pure; where there is one writer, nobody is ever seen writing, and a look settles at
once.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Generic, TypeVar

import msgspec

Cut = TypeVar("Cut")


class _Pending(msgspec.Struct, Generic[Cut]):
    cut: Cut
    writers: Set[str]  # those of them that have not ended


class Settling(Generic[Cut]):
    """Two looks are waited for at a time: the oldest, and the latest, which will be next."""

    def __init__(self) -> None:
        self._pending: list[_Pending[Cut]] = []

    def look(self, cut: Cut, writers: Set[str]) -> Cut | None:
        """The latest cut that is settled now, if one is that was not before."""
        settled = None
        waiting = []
        for earlier in self._pending:
            earlier.writers = earlier.writers & writers
            if earlier.writers:
                waiting.append(earlier)
            else:
                settled = earlier.cut
        if not writers:
            self._pending = []
            return cut
        latest = _Pending(cut, writers)
        self._pending = [*waiting[:1], latest]
        return settled
