"""Protocol of a store for minute counters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from penstock.domain.queue.minute_counters import MinuteCounters, Step


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
