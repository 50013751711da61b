"""An overview of all queues: changes and problems."""

from __future__ import annotations

import msgspec

from penstock.domain.queue.counts import Counts
from penstock.domain.queue.problem import (
    HANGING_AFTER_MS,
    STUCK_AFTER_MS,
    HangingRoute,
    OldTransaction,
    Problem,
    QueueSnapshot,
    problems_of,
    worst_first,
)
from penstock.domain.queue.queue import Queue
from penstock.domain.store.damage import Damage
from penstock.ports.clock import Clock
from penstock.ports.store import Session, Store
from penstock.ports.unit_of_work import Work, read

MAX_CHANGED = 500  # queues per look; if there are more, `is_cut` is set
MAX_SUSPECTS = 1_000
MAX_HANGING = 100  # routes
MAX_TRANSACTIONS = 20


class Changed(msgspec.Struct, frozen=True):
    queue: Queue
    counts: Counts
    before: Counts | None  # None: unknown


class OverviewLook(msgspec.Struct, frozen=True):
    """Everything at one instant, and what the next look needs to find changes."""

    at: int
    total: Counts
    workers: int
    open_circuits: int
    marks: dict[int, int]
    known: dict[int, Counts]
    changed: list[Changed]
    is_cut: bool = False  # more queues have changed


class ProblemsOfQueue(msgspec.Struct, frozen=True):
    snapshot: QueueSnapshot
    problems: tuple[Problem, ...]


class OverviewService:
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def look(self, before: OverviewLook | None = None) -> Work[OverviewLook]:
        """Without a previous look, no queue has changed."""
        now = self._clock.now()
        return read(self._store, lambda session: _look(session, before, now))

    def problems(self) -> Work[list[ProblemsOfQueue]]:
        """Queues with problems, worst first."""
        now = self._clock.now()

        def do(session: Session) -> list[ProblemsOfQueue]:
            late_at = now - STUCK_AFTER_MS
            suspects = session.overview.suspects(late_at=late_at, limit=MAX_SUSPECTS)
            found = worst_first((one, problems_of(one, now=now)) for one in suspects)
            return [ProblemsOfQueue(one, problems_of(one, now=now)) for one in found]

        return read(self._store, do)

    def hanging(self) -> Work[list[HangingRoute]]:
        """Routes whose endpoint does not answer, on any node; those with most deliveries first."""
        since = self._clock.now() - HANGING_AFTER_MS
        return read(
            self._store, lambda session: session.overview.hanging(since=since, limit=MAX_HANGING)
        )

    def transactions(self) -> Work[list[OldTransaction]]:
        """Open transactions, oldest first; long-running ones slow claims down."""
        return read(
            self._store, lambda session: session.overview.transactions(limit=MAX_TRANSACTIONS)
        )

    def old_transactions(self) -> Work[list[OldTransaction]]:
        """Transactions that have been open for too long."""
        now = self._clock.now()

        def do(session: Session) -> list[OldTransaction]:
            found = session.overview.transactions(limit=MAX_TRANSACTIONS)
            return [one for one in found if one.is_old(now=now)]

        return read(self._store, do)

    def damage(self) -> Damage | None:
        """Damage that requests have run into so far."""
        return self._store.damage()


def _look(session: Session, before: OverviewLook | None, now: int) -> OverviewLook:
    marks = session.overview.marks()
    known = {} if before is None else before.known
    nos: list[int] = []
    if before is not None:
        nos = [no for no, mark in marks.items() if before.marks.get(no) != mark]
    shown = nos[:MAX_CHANGED]
    counts = session.queues.counts(shown) if shown else {}
    changed = [
        Changed(queue, counts[queue.queue_no], known.get(queue.queue_no))
        for queue in session.queues.some(shown)
    ]
    return OverviewLook(
        at=now,
        total=session.queues.total(),
        workers=session.overview.workers(now=now),
        open_circuits=session.overview.open_circuits(),
        marks=marks,
        known=known | counts,
        changed=changed,
        is_cut=len(nos) > len(shown),
    )
