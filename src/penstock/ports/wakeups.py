"""Wake-ups: hints that a queue may have something to claim.  A lost one only costs time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol


class Wakeups(Protocol):
    def listen(self, callback: Callable[[Mapping[int, int]], None]) -> None:
        """Call back with {queue_no: how many became ready} after commits, from any thread."""
        ...
