"""Protocols of a store: queries over all queues, and their minute counters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from penstock.domain.queue.minute_counters import MinuteCounters, Step
from penstock.domain.queue.problem import HangingRoute, OldTransaction, QueueSnapshot
from penstock.domain.store.upkeep import Upkeep


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

    def upkeep(self, *, limit: int) -> Upkeep:
        """What vacuum has left to do, for a limited number of tables."""
        ...


class MinuteCounterStore(Protocol):
    def add(self, samples: Sequence[MinuteCounters], *, at: int, is_for_lake: bool) -> None:
        """Store counters that were read at an instant.  The first sample of a minute counts."""
        ...

    def first_at(self, queue_no: int) -> int | None:
        """The minute of its first sample."""
        ...

    def before(self, queue_no: int, *, at: int) -> MinuteCounters | None:
        """The last sample up to that instant, inclusive."""
        ...

    def steps(self, queue_no: int, *, from_at: int, to_at: int, step_ms: int) -> list[Step]:
        """Steps that have samples: later than `from_at`, until `to_at`."""
        ...

    def oldest_ready(self, queue_nos: Sequence[int]) -> dict[int, int]:
        """By queue: since when its next message has been claimable."""
        ...

    def times(
        self, queue_no: int, *, from_at: int, to_at: int, limit: int
    ) -> list[tuple[int, int]]:
        """Waiting and working times of messages done in that span, latest first."""
        ...

    def thin(self, *, from_at: int, to_at: int, upto_no: int) -> int:
        """Remove all but the last sample of each queue.

        Samples for the lake with a number above `upto_no` stay, here and in `forget`.
        """
        ...

    def forget(self, *, before_at: int, upto_no: int) -> int: ...
