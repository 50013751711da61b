"""Programs that write to a SQLite store without lining up: an application's own transaction.

SQLite asks its waiting writer again and again whether to go on.  On an event loop nobody waits.
"""

from __future__ import annotations

import threading

_STEP_MS = 5


class Patience:
    """How a connection waits for a lock that a stranger holds."""

    def __init__(self, longest_ms: int) -> None:
        self._longest_ms = longest_ms
        self._never = threading.Event()
        self.is_short = False

    def wait(self, times: int) -> bool:
        """Asked by SQLite after so many tries: True to try once more."""
        if self.is_short or times * _STEP_MS >= self._longest_ms:
            return False
        self._never.wait((_STEP_MS if times else 1) / 1000)
        return True
