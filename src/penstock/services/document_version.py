"""The version of a document that a node uses."""

from __future__ import annotations

from penstock.domain.limits import SECOND

_UNDER_WAY_MS = 5 * SECOND  # by then a local put was committed or rolled back


class DocumentVersion:
    """A local put takes effect at once, even if a concurrent refresh has read an older version."""

    def __init__(self) -> None:
        self._version = 0
        self._put_at = 0

    def put(self, version: int, *, now: int) -> None:
        """A local put, in a transaction that has not ended yet."""
        self._version = version
        self._put_at = now

    def is_news(self, version: int, *, now: int) -> bool:
        """Whether this stored version is new to the node; records it if so."""
        if version == self._version:
            return False
        if version < self._version and now < self._put_at + _UNDER_WAY_MS:
            return False
        self._version = version
        return True
