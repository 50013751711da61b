"""What every store can do about the samples of counters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from penstock.domain.queue.minute_counters import Sample, Step


class Samples(Protocol):
    def add(self, samples: Sequence[Sample], *, at: int, is_for_lake: bool) -> None:
        """Store counters that were read at an instant.  The first sample of a minute counts."""
        ...

    def first_at(self, queue_no: int) -> int | None:
        """When it was told of for the first time."""
        ...

    def before(self, queue_no: int, *, at: int) -> Sample | None:
        """The last one until then, that instant included."""
        ...

    def steps(self, queue_no: int, *, from_at: int, to_at: int, step_ms: int) -> list[Step]:
        """Steps that have samples: later than `from_at`, until `to_at`."""
        ...

    def oldest_ready(self, queue_nos: Sequence[int]) -> dict[int, int]:
        """By queue, since when the next in line could have been claimed."""
        ...

    def times(
        self, queue_no: int, *, from_at: int, to_at: int, limit: int
    ) -> list[tuple[int, int]]:
        """How long messages waited and were worked on that were done then, the latest ones."""
        ...

    def thin(self, *, from_at: int, to_at: int, upto_no: int) -> int:
        """Remove all but the last sample of each queue.

        Samples for the lake with a number above `upto_no` stay, here and in `forget`.
        """
        ...

    def forget(self, *, before_at: int, upto_no: int) -> int: ...
