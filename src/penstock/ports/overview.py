"""What every store can tell of all queues at once."""

from __future__ import annotations

from typing import Protocol

from penstock.domain.queue.problem import Glance, HangingRoute, OldTransaction


class Watching(Protocol):
    """For operators: from counters and small indexes, whatever the number of messages."""

    def marks(self) -> dict[int, int]:
        """By queue, a number that is another one after a change of its counters."""
        ...

    def workers(self, *, now: int) -> int:
        """How many are alive."""
        ...

    def open_circuits(self) -> int:
        """How many are open or half-open."""
        ...

    def suspects(self, *, late_at: int, limit: int) -> list[Glance]:
        """Queues that something may be wrong with; late is what could be claimed by then."""
        ...

    def hanging(self, *, since: int, limit: int) -> list[HangingRoute]:
        """Routes with deliveries that are under way since then or longer, the most first."""
        ...

    def transactions(self, *, limit: int) -> list[OldTransaction]:
        """Open transactions that keep the database from removing deleted rows, the oldest first.

        None where the store does not work like that.
        """
        ...
