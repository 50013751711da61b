"""Hints that a queue may have something to claim.  A lost hint costs time, never a message."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol


class Wakeups(Protocol):
    def listen(self, callback: Callable[[Mapping[int, int]], None]) -> None:
        """Call back with {queue_no: how many became ready} after commits, from any thread."""
        ...
