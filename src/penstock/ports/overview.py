"""Protocol of a store for queries over all queues."""

from __future__ import annotations

from typing import Protocol

from penstock.domain.queue.problem import HangingRoute, OldTransaction, QueueSnapshot


class OverviewStore(Protocol):
    """For operators; uses only counters and small indexes, however many messages there are."""

    def marks(self) -> dict[int, int]:
        """By queue, a number that changes with its counters."""
        ...

    def workers(self, *, now: int) -> int:
        """How many are alive."""
        ...

    def open_circuits(self) -> int:
        """How many are open or half-open."""
        ...

    def suspects(self, *, late_at: int, limit: int) -> list[QueueSnapshot]:
        """Queues that may have a problem; `late_at`: a message that was due by then is late."""
        ...

    def hanging(self, *, since: int, limit: int) -> list[HangingRoute]:
        """Routes with deliveries under way since then or longer, those with most first."""
        ...

    def transactions(self, *, limit: int) -> list[OldTransaction]:
        """Open transactions that keep the database from removing deleted rows, oldest first.

        Empty for backends without this problem.
        """
        ...
