"""Waiting for writers that bypass our write lock, such as an application's own transaction.

SQLite calls `BusyWait.wait` after each failed try.  An event loop does not wait at all.
"""

from __future__ import annotations

import threading

_STEP_MS = 5


class BusyWait:
    """SQLite's busy handler for one connection."""

    def __init__(self, longest_ms: int) -> None:
        self._longest_ms = longest_ms
        self._never = threading.Event()
        self.is_short = False

    def wait(self, times: int) -> bool:
        """Called by SQLite after `times` tries; True to try again."""
        if self.is_short or times * _STEP_MS >= self._longest_ms:
            return False
        self._never.wait((_STEP_MS if times else 1) / 1000)
        return True
