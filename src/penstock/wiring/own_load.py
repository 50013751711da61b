"""The load of the store's own queues, for the autoscaler: from counters and one index lookup.

A rate is how much a counter has grown since the last reading, per second.  Done and dead messages
count as consumed; an attempt that failed and will be retried has not made the backlog shorter.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

from penstock.domain.errors import QueueUnknown, SourceUnavailable, StoreUnavailable
from penstock.domain.queue.counts import Counts
from penstock.domain.queue.queue import Queue
from penstock.domain.scaling.counter_rates import Measured, measure
from penstock.domain.scaling.pressure import Pressure
from penstock.domain.scaling.recommendation import Sample, Staged
from penstock.ports.store import Session, Store

TIMEOUT_S = 10.0
_PAGE = 1_000


class OwnLoad:
    """Safe to share between threads; fleets of the same queue share its rates."""

    def __init__(self, store: Store, *, timeout_s: float = TIMEOUT_S) -> None:
        self._store = store
        self._timeout_s = timeout_s
        self._last: dict[str, Measured] = {}
        self._lock = threading.Lock()

    def read(self, queue: str, staging_indicator: str | None, *, now: int) -> Sample:
        prefix = None if staging_indicator is None else queue + staging_indicator
        found, oldest_at = self._counts(queue, prefix)
        with self._lock:
            rates = {one.name: self._rates(one, counts, now) for one, counts in found}
        (_, mine), *staged = found
        return Sample(
            ready=mine.ready,
            leased=mine.leased,
            consume_rate=rates[queue].consume_rate,
            publish_rate=rates[queue].publish_rate,
            oldest_ms=None if oldest_at is None else max(now - oldest_at, 0),
            staged=tuple(
                Staged(one.name, counts.ready, rates[one.name].publish_rate)
                for one, counts in staged
            ),
        )

    def pressure(self, *, now: int) -> Pressure | None:
        """None: a store has no limit of its own."""
        return None

    def close(self) -> None:
        """Does nothing: the caller owns the store."""

    def _counts(
        self, queue: str, prefix: str | None
    ) -> tuple[list[tuple[Queue, Counts]], int | None]:
        """The counts, the queue itself first, and since when its oldest message has been ready."""

        def do(session: Session) -> tuple[list[tuple[Queue, Counts]], int | None]:
            found = session.queues.find(queue)
            if found is None:
                raise QueueUnknown(f"queue {queue!r} does not exist")
            queues = [found, *(() if prefix is None else _beginning(session, prefix))]
            counts = session.queues.counts([one.queue_no for one in queues])
            oldest_at = session.queues.oldest_ready_at(found.queue_no)
            return [(one, counts[one.queue_no]) for one in queues], oldest_at

        try:
            return self._store.read(do).result(self._timeout_s)
        except (StoreUnavailable, TimeoutError) as error:
            # Not the error's own text, which may contain the database's address.
            is_late = isinstance(error, TimeoutError)
            why = f": no answer within {self._timeout_s:g} s" if is_late else ""
            raise SourceUnavailable(f"the store cannot be read{why}") from error

    def _rates(self, queue: Queue, counts: Counts, now: int) -> Measured:
        consumed = counts.done_total + counts.dead_total
        found = measure(
            self._last.get(queue.name),
            queue.queue_no,
            consumed=consumed,
            sent=counts.sent_total,
            now=now,
        )
        self._last[queue.name] = found
        return found


def _beginning(session: Session, prefix: str) -> Iterator[Queue]:
    """All queues whose names start with the prefix and are longer."""
    after = prefix  # leaves out a queue with exactly this name
    while page := session.queues.page(prefix=prefix, after=after, limit=_PAGE):
        yield from page
        after = page[-1].name
