"""Jobs as a store in the same process has them, in the same records that a server sends."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from penstock.api.messages import Message
from penstock.api.queues import Totals
from penstock.domain.datetimes import moment_of
from penstock.domain.queue import counts
from penstock.operations.messages import record_of
from penstock.services.message_views import MessageView


class JobPage(msgspec.Struct, frozen=True):
    """Some jobs; `next` is the cursor of the page behind them, None after the last."""

    jobs: list[Message]
    next: str | None = None

    def __iter__(self) -> Iterator[Message]:
        return iter(self.jobs)

    def __len__(self) -> int:
        return len(self.jobs)


class JobCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs that are there now, by state; `totals` counts all there ever were."""

    waiting: int = 0
    ready: int = 0
    leased: int = 0
    dead: int = 0
    totals: Totals = Totals.of(counts.Counts())


def job_of(view: MessageView) -> Message:
    return record_of(view, moment_of, msgspec.json.decode)


def counts_of(found: counts.Counts) -> JobCounts:
    return JobCounts(
        waiting=found.waiting,
        ready=found.ready,
        leased=found.leased,
        dead=found.dead,
        totals=Totals.of(found),
    )
