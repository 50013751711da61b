"""Which version of a document a node goes by."""

from __future__ import annotations

from penstock.domain.limits import SECOND

_UNDER_WAY_MS = 5 * SECOND  # by then what was put here is in the store, or was not kept


class Kept:
    """What was put here counts at once, also for those who have asked the store a moment before."""

    def __init__(self) -> None:
        self._version = 0
        self._put_at = 0

    def put(self, version: int, *, now: int) -> None:
        """From here, in a transaction that is not over yet."""
        self._version = version
        self._put_at = now

    def is_news(self, version: int, *, now: int) -> bool:
        """Is this version of the store's another one, and to be taken?  Then it is kept."""
        if version == self._version:
            return False
        if version < self._version and now < self._put_at + _UNDER_WAY_MS:
            return False
        self._version = version
        return True
