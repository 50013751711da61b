"""Graphs of the counters of a queue, or of all queues together."""

from __future__ import annotations

import msgspec

from penstock.domain.errors import QueueNotFound
from penstock.domain.limits import HOUR
from penstock.domain.queue import minute_counters as samples
from penstock.domain.queue.minute_counters import ALL, GraphPoint, choose_step
from penstock.ports.clock import Clock
from penstock.ports.store import Session, Store
from penstock.ports.unit_of_work import Work, read


class Graph(msgspec.Struct, frozen=True):
    from_at: int
    to_at: int
    step_ms: int
    points: list[GraphPoint]


class Graphs:
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
            queue_no = ALL
            last = session.minute_counters.before(ALL, at=until_at)
            told_at = since_at if last is None else max(since_at, last.minute_at)
            if queue is not None:
                found = session.queues.find(queue)
                if found is None:
                    raise QueueNotFound(queue)
                queue_no = found.queue_no
            drawn = samples.points(
                session.minute_counters.steps(
                    queue_no, from_at=since_at, to_at=told_at, step_ms=step
                ),
                before=session.minute_counters.before(queue_no, at=since_at),
                is_new=_is_new(session, queue_no),
                from_at=since_at,
                to_at=told_at,
                step_ms=step,
            )
            return Graph(since_at, told_at, step, drawn)

        return read(self._store, do)


def _is_new(session: Session, queue_no: int) -> bool:
    """The first samples cover all queues with messages, so a queue that appears later was empty."""
    first_at, began_at = (
        session.minute_counters.first_at(queue_no),
        session.minute_counters.first_at(ALL),
    )
    return first_at is not None and began_at is not None and began_at < first_at
