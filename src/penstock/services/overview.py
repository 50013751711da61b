"""An overview of all queues: changes, problems, and graphs of their counters."""

from __future__ import annotations

import msgspec

from penstock.domain.limits import HOUR
from penstock.domain.queue import minute_counters as samples
from penstock.domain.queue.minute_counters import ALL, GraphPoint, choose_step
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
from penstock.domain.queue.queue import Counts, Queue
from penstock.domain.store.upkeep import Upkeep
from penstock.ports.clock import Clock
from penstock.ports.store import Session, Store
from penstock.ports.unit_of_work import Work, read

MAX_CHANGED = 500  # queues per snapshot; if there are more, `is_cut` is set
MAX_SUSPECTS = 1_000
MAX_HANGING = 100  # routes
MAX_TRANSACTIONS = 20
MAX_TABLES = 20


class ChangedQueue(msgspec.Struct, frozen=True):
    queue: Queue
    counts: Counts
    before: Counts | None  # None: unknown


class OverviewSnapshot(msgspec.Struct, frozen=True):
    """Everything at one instant, and what the next one needs to find changes."""

    at: int
    total: Counts
    workers: int
    open_circuits: int
    marks: dict[int, int]
    known: dict[int, Counts]
    changed: list[ChangedQueue]
    is_cut: bool = False  # more queues have changed


class ProblemsOfQueue(msgspec.Struct, frozen=True):
    snapshot: QueueSnapshot
    problems: tuple[Problem, ...]


class OverviewService:
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def snapshot(self, before: OverviewSnapshot | None = None) -> Work[OverviewSnapshot]:
        """Without a previous snapshot, no queue has changed."""
        now = self._clock.now()
        return read(self._store, lambda session: _snapshot(session, before, now))

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

    def upkeep(self) -> Work[Upkeep]:
        """What vacuum has left to do."""
        return read(self._store, lambda session: session.overview.upkeep(limit=MAX_TABLES))

    def old_transactions(self) -> Work[list[OldTransaction]]:
        """Transactions that have been open for too long."""
        now = self._clock.now()

        def do(session: Session) -> list[OldTransaction]:
            found = session.overview.transactions(limit=MAX_TRANSACTIONS)
            return [one for one in found if one.is_old(now=now)]

        return read(self._store, do)


def _snapshot(session: Session, before: OverviewSnapshot | None, now: int) -> OverviewSnapshot:
    marks = session.overview.marks()
    known = {} if before is None else before.known
    nos: list[int] = []
    if before is not None:
        nos = [no for no, mark in marks.items() if before.marks.get(no) != mark]
    shown = nos[:MAX_CHANGED]
    counts = session.queues.counts(shown) if shown else {}
    changed = [
        ChangedQueue(queue, counts[queue.queue_no], known.get(queue.queue_no))
        for queue in session.queues.by_numbers(shown)
    ]
    return OverviewSnapshot(
        at=now,
        total=session.queues.total(),
        workers=session.overview.workers(now=now),
        open_circuits=session.overview.open_circuits(),
        marks=marks,
        known=known | counts,
        changed=changed,
        is_cut=len(nos) > len(shown),
    )


class Graph(msgspec.Struct, frozen=True):
    from_at: int
    to_at: int
    step_ms: int
    points: list[GraphPoint]


class Graphs:
    """Graphs of the counters of a queue, or of all queues together."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def draw(
        self,
        queue: str | None,
        *,
        from_at: int | None = None,
        to_at: int | None = None,
        step_ms: int | None = None,
    ) -> Work[Graph]:
        """By default for the last hour, up to the last sampled minute.

        Raises InvalidRequest; running the work may raise QueueNotFound.
        """
        now = self._clock.now()
        until_at = now if to_at is None else min(to_at, now)
        since_at = until_at - HOUR if from_at is None else from_at
        step = choose_step(since_at, until_at, step_ms)
        since_at -= since_at % step

        def do(session: Session) -> Graph:
            queue_no = ALL if queue is None else session.queues.named(queue).queue_no
            last = session.minute_counters.before(ALL, at=until_at)
            drawn_until = since_at if last is None else max(since_at, last.minute_at)
            drawn = samples.points(
                session.minute_counters.steps(
                    queue_no, from_at=since_at, to_at=drawn_until, step_ms=step
                ),
                before=session.minute_counters.before(queue_no, at=since_at),
                is_new=_is_new(session, queue_no),
                from_at=since_at,
                to_at=drawn_until,
                step_ms=step,
            )
            return Graph(since_at, drawn_until, step, drawn)

        return read(self._store, do)


def _is_new(session: Session, queue_no: int) -> bool:
    """The first samples cover all queues with messages, so a queue that appears later was empty."""
    first_at, began_at = (
        session.minute_counters.first_at(queue_no),
        session.minute_counters.first_at(ALL),
    )
    return first_at is not None and began_at is not None and began_at < first_at
