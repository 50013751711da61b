"""How many jobs to claim ahead by default: as many as finish within 50 ms.

Short jobs are claimed by the hundred, so that many share a commit; long ones are left to other
workers that could run them at once.
"""

from __future__ import annotations

_WINDOW_MS = 20
_AHEAD_MS = 50
MAX_NUMBER = 500


class Prefetch:
    def __init__(self) -> None:
        self._since: int | None = None
        self._done = 0
        self.ahead = 0

    def note(self, done: int, *, now: int) -> None:
        if self._since is None:
            self._since = now
        self._done += done
        passed = now - self._since
        if passed >= _WINDOW_MS:
            self.ahead = min(self._done * _AHEAD_MS // passed, MAX_NUMBER)
            self._since, self._done = now, 0
