"""The sampler stores the counters of queues, once a minute per cluster.

It samples queues that have changed since it last checked, and all queues after a start and once a
day, so that the latest sample of a quiet queue never gets old enough to be pruned.  If history is
archived, it also samples every queue that is not empty, because in the lake a minute without a row
means an empty queue.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from penstock.domain.chunks import chunks
from penstock.domain.limits import DAY, HOUR, MINUTE
from penstock.domain.queue.minute_counters import (
    ALL,
    MINUTES_KEPT_MS,
    Latency,
    MinuteCounters,
    latency_of,
)
from penstock.domain.queue.queue import Counts
from penstock.ports.store import Session, Store
from penstock.runtime.duties import read_prunable_rows

_CLAIM_MS = 5_000  # other nodes leave a minute to the first one for this long
_CHUNK = 500  # queues per transaction
_MAX_TIMES = 20_000  # finished messages read per minute, for latencies
_TIMES_PER_QUEUE = (20, 1_000)  # … of one queue, at least and at most


class Sampler:
    name = "sampler"

    def __init__(self, store: Store, *, retention_days: int, is_archived: bool = False) -> None:
        self._store = store
        self._retention_ms = retention_days * DAY
        self._is_archived = is_archived
        # A duty of its own: samples for the lake are taken even if another node took others.
        self._duty = "lake sampler" if is_archived else self.name
        self._marks: dict[int, int] = {}
        self._done: dict[int, int] = {}  # totals of what was done, to see what is new
        self._read_at = 0
        self._timed_until = 0  # what was done before is in the samples

    def tick(self, now: int) -> int:
        minute_at = now - now % MINUTE
        if not self._is_done(now):
            if not self._take(f"{self._duty} at work", _CLAIM_MS, now):
                return now + _CLAIM_MS  # if that node exits, another one samples this minute
            if self._complete(now) and minute_at % HOUR == 0:
                self._tidy(minute_at)
        return minute_at + MINUTE

    def take(self, now: int) -> bool:
        """Sample this minute, unless another node has; returns whether it was this one."""
        return not self._is_done(now) and self._complete(now)

    def _complete(self, now: int) -> bool:
        self.sample(now)
        # Last, so that a minute whose sampler was killed is sampled again.
        return self._take(self._duty, MINUTE - now % MINUTE, now)

    def _is_done(self, now: int) -> bool:
        until_at = self._store.read(lambda s: s.duties.until(self._duty)).result()
        return until_at is not None and until_at > now

    def _take(self, duty: str, for_ms: int, now: int) -> bool:
        do = self._store.write(lambda s: s.duties.take(duty, for_ms=for_ms, now=now))
        return do.result() is not None

    def sample(self, now: int) -> None:
        """Sample this minute, whether or not another node has."""
        minute_at = now - now % MINUTE
        marks = self._store.read(lambda s: s.overview.marks()).result()
        if minute_at // DAY != self._read_at // DAY:
            self._marks = {}
        changed = {no for no, mark in marks.items() if mark != self._marks.get(no)}
        all_times: list[tuple[int, int]] = []
        # Includes messages done after the minute's end: their queue may not change in the next one.
        span = (max(self._timed_until, minute_at - MINUTE), now + 1)
        limit = _share(len(changed))
        for nos in chunks([no for no in marks if self._is_archived or no in changed], _CHUNK):
            samples, times = self._store.read(
                self._read_counters(nos, minute_at, span, limit)
            ).result()
            all_times += times
            samples = [s for s in samples if s.queue_no in changed or not s.is_empty]
            self._store.write(_add(samples, at=now, is_for_lake=self._is_archived)).result()
        total = self._store.read(lambda s: _total(s, minute_at, all_times)).result()
        self._store.write(_add([total], at=now, is_for_lake=False)).result()
        self._marks, self._read_at, self._timed_until = marks, minute_at, span[1]

    def _read_counters(
        self, nos: Sequence[int], minute_at: int, span: tuple[int, int], limit: int
    ) -> Callable[[Session], tuple[list[MinuteCounters], list[tuple[int, int]]]]:
        def do(session: Session) -> tuple[list[MinuteCounters], list[tuple[int, int]]]:
            oldest = session.minute_counters.oldest_ready(nos)
            found, all_times = [], []
            for no, counts in session.queues.counts(nos).items():
                times: list[tuple[int, int]] = []
                if counts.done_total != self._done.get(no):
                    from_at, to_at = span
                    times = session.minute_counters.times(
                        no, from_at=from_at, to_at=to_at, limit=limit
                    )
                self._done[no] = counts.done_total
                all_times += times
                found.append(_sample(no, minute_at, counts, oldest.get(no), latency_of(times)))
            return found, all_times

        return do

    def _tidy(self, now: int) -> None:
        before_at = now - self._retention_ms
        upto_no = read_prunable_rows(self._store, is_archived=self._is_archived).samples_no
        if self._store.write(lambda s: s.maintenance.may_prune(now=now)).result():
            self._store.write(
                lambda s: s.minute_counters.forget(before_at=before_at, upto_no=upto_no)
            ).result()
        # A day's worth each time, in case no node was running for a while.
        last_at = (now - MINUTES_KEPT_MS) // HOUR * HOUR
        for to_at in range(last_at - DAY + HOUR, last_at + 1, HOUR):
            self._store.write(_thin(to_at, upto_no)).result()


def _share(queues: int) -> int:
    least, most = _TIMES_PER_QUEUE
    return max(least, min(most, _MAX_TIMES // max(1, queues)))


def _total(session: Session, minute_at: int, times: Sequence[tuple[int, int]]) -> MinuteCounters:
    return _sample(ALL, minute_at, session.queues.total(), None, latency_of(times))


def _sample(
    queue_no: int, minute_at: int, counts: Counts, oldest_at: int | None, latency: Latency
) -> MinuteCounters:
    values = msgspec.structs.astuple
    return MinuteCounters(queue_no, minute_at, *(*values(counts), oldest_at, *values(latency)))


def _add(
    samples: Sequence[MinuteCounters], *, at: int, is_for_lake: bool
) -> Callable[[Session], None]:
    return lambda session: session.minute_counters.add(samples, at=at, is_for_lake=is_for_lake)


def _thin(to_at: int, upto_no: int) -> Callable[[Session], int]:
    return lambda session: session.minute_counters.thin(
        from_at=to_at - HOUR, to_at=to_at, upto_no=upto_no
    )
