"""Pages and counts of jobs."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from penstock.api.messages import Message
from penstock.api.queues import Totals
from penstock.domain.queue.queue import Counts


class JobPage(msgspec.Struct, frozen=True):
    """Some jobs; `next` is the cursor of the next page, None after the last."""

    jobs: list[Message]
    next: str | None = None

    def __iter__(self) -> Iterator[Message]:
        return iter(self.jobs)

    def __len__(self) -> int:
        return len(self.jobs)


class JobCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs that exist now, by state; `totals` counts all that have ever existed."""

    waiting: int = 0
    ready: int = 0
    leased: int = 0
    dead: int = 0
    totals: Totals = Totals.of(Counts())
