"""Protocol of a store for the pusher."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from penstock.domain.queue.queue import Queue


class DeliveryStore(Protocol):
    def queues_with_ready(self) -> list[int]:
        """Numbers of all queues with ready messages that are neither paused nor held."""
        ...

    def queues(self, queue_nos: Sequence[int]) -> list[Queue]:
        """The queues that exist, in any order."""
        ...

    def end_backoff(self, queue_nos: Sequence[int], *, now: int) -> list[int]:
        """Make first messages that wait after a failure due now; returns the queues with one."""
        ...
