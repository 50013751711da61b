"""How much to claim ahead when nobody has said so: as much as is done in a moment.

Short jobs are claimed by the hundred, so that a commit is shared by many; of long ones none waits
here that another worker could do.
"""

from __future__ import annotations

_WINDOW_MS = 20
_AHEAD_MS = 50
MOST = 500


class Pace:
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
            self.ahead = min(self._done * _AHEAD_MS // passed, MOST)
            self._since, self._done = now, 0
