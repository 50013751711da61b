"""Simulates a fleet that handles a queue's arrivals, scaled by the autoscaler's own functions.

Messages are claimed in order of arrival, each takes its recorded time, and a worker that is stopped
finishes its messages.  At each interval domain/scaling/fleet_run.py decides, as in the autoscaler.
"""

from __future__ import annotations

import heapq
import math
from array import array
from collections.abc import Sequence
from typing import Self

import msgspec
import pyarrow as pa

from penstock.domain.limits import DAY, HOUR, MINUTE
from penstock.domain.scaling.fleet import Fleet
from penstock.domain.scaling.fleet_run import FleetReading, FleetState, record_scaling, run
from penstock.domain.scaling.recommendation import Profile, Replicas, Sample

FLAP_MS = 10 * MINUTE  # a reversed change within this time is a flap


class QueueArrivals(msgspec.Struct, frozen=True):
    """When messages arrive, in order, and how long they take: 16 bytes for each."""

    at: Sequence[int]
    work_ms: Sequence[int]

    @classmethod
    def of(cls, table: pa.Table) -> Self:
        """From the columns `at` and `work_ms`, which are not copied into Python's objects."""
        ordered = table.select(["at", "work_ms"]).sort_by("at")
        return cls(_numbers(ordered.column("at")), _numbers(ordered.column("work_ms")))


class Backtest(msgspec.Struct, frozen=True, kw_only=True):
    messages: int
    unfinished: int  # messages not claimed a day after the end
    age_p50_ms: int | None  # of messages, when they were claimed
    age_p99_ms: int | None
    age_max_ms: int | None
    clear_max_ms: int  # the longest time from the first waiting message until none waits
    backlog_max: int
    workers_max: int
    worker_hours: float
    changes: int
    flaps: int


class SimulatedFleet:
    """The simulated workers and their backlog at one instant."""

    def __init__(self, arrivals: QueueArrivals, *, from_at: int, slots: int) -> None:
        self.now = from_at
        self.running = 0  # workers
        self.starting: list[int] = []  # heap of instants at which they are running
        self.busy: list[int] = []  # heap of instants at which each finishes
        self.ages = array("q")
        self.arrived = self.claimed = self.finished = self.backlog_max = self.clear_max_ms = 0
        self.slot_ms = 0
        self._free = self._leaving = 0  # slots
        self._slots = slots
        self._waits_since: int | None = None
        self._arrivals = arrivals
        self._total = len(arrivals.at)

    @property
    def backlog(self) -> int:
        """Messages that have arrived and are not claimed: those next in order."""
        return self.arrived - self.claimed

    @property
    def is_finished(self) -> bool:
        return self.claimed == self._total and not self.busy

    def advance(self, to: int) -> None:
        while (at := self._next_event_at()) <= to:
            self._pass_time(at)
            self._apply_event(at)
            self._claim(at)
        self._pass_time(to)

    def grow(self, by: int, *, start_ms: int) -> None:
        for _ in range(by):
            heapq.heappush(self.starting, self.now + start_ms)

    def shrink(self, by: int) -> None:
        """Stop starting workers first, then idle ones, then busy ones once they finish."""
        unstarted = min(by, len(self.starting))
        self.starting = sorted(self.starting)[: len(self.starting) - unstarted]
        stopped = min(by - unstarted, self.running)
        self.running -= stopped
        idle = min(stopped * self._slots, self._free)
        self._free -= idle
        self._leaving += stopped * self._slots - idle

    def _next_event_at(self) -> float:
        ahead = (
            self._arrivals.at[self.arrived] if self.arrived < self._total else math.inf,
            self.busy[0] if self.busy else math.inf,
            self.starting[0] if self.starting else math.inf,
        )
        return max(self.now, min(ahead))

    def _pass_time(self, to: float) -> None:
        alive = self._free + len(self.busy) + len(self.starting) * self._slots
        self.slot_ms += alive * (int(to) - self.now)
        self.now = int(to)

    def _apply_event(self, at: float) -> None:
        if self.busy and self.busy[0] <= at:
            heapq.heappop(self.busy)
            self.finished += 1
            if self._leaving:
                self._leaving -= 1
            else:
                self._free += 1
        elif self.starting and self.starting[0] <= at:
            heapq.heappop(self.starting)
            self.running += 1
            self._free += self._slots
        else:
            self.arrived += 1

    def _claim(self, at: float) -> None:
        while self._free and self.backlog:
            self.ages.append(self.now - self._arrivals.at[self.claimed])
            heapq.heappush(self.busy, self.now + self._arrivals.work_ms[self.claimed])
            self.claimed += 1
            self._free -= 1
        self.backlog_max = max(self.backlog_max, self.backlog)
        if not self.backlog:
            since, self._waits_since = self._waits_since, None
        elif self._waits_since is None:
            since = self._waits_since = self.now
        else:
            since = self._waits_since
        if since is not None:
            self.clear_max_ms = max(self.clear_max_ms, self.now - since)


def backtest(
    arrivals: QueueArrivals,
    fleet: Fleet,
    profile: Profile,
    *,
    from_at: int,
    to_at: int,
    slots: int = 1,
    start_ms: int = 0,
) -> Backtest:
    """Run from an empty fleet until the end, then until all is finished, for at most a day."""
    simulated = SimulatedFleet(arrivals, from_at=from_at, slots=slots)
    simulated.grow(fleet.min, start_ms=0)
    state = FleetState()
    changes = _Changes()
    arrived = finished = 0
    while simulated.now < to_at or not (simulated.is_finished or simulated.now >= to_at + DAY):
        simulated.advance(simulated.now + fleet.interval_ms)
        per_s = 1000 / fleet.interval_ms
        reading = FleetReading(
            replicas=_replicas(simulated),
            sample=Sample(
                ready=simulated.backlog,
                leased=len(simulated.busy),
                consume_rate=(simulated.finished - finished) * per_s,
                publish_rate=(simulated.arrived - arrived) * per_s,
            ),
        )
        arrived, finished = simulated.arrived, simulated.finished
        state, decision = run(state, reading, fleet, profile, (), now=simulated.now)
        if decision.change:
            _scale(simulated, decision.change, start_ms)
            state = record_scaling(state, decision, fleet, now=simulated.now)
            changes.note(decision.change, now=simulated.now)
        changes.workers_max = max(changes.workers_max, simulated.running + len(simulated.starting))
    return _result(simulated, changes, slots)


class _Changes:
    def __init__(self) -> None:
        self.changes = self.flaps = self.workers_max = 0
        self._last: tuple[bool, int] | None = None

    def note(self, change: int, *, now: int) -> None:
        is_up = change > 0
        if self._last is not None and self._last[0] != is_up and now - self._last[1] < FLAP_MS:
            self.flaps += 1
        self.changes += 1
        self._last = is_up, now


def _replicas(simulated: SimulatedFleet) -> Replicas:
    starting = len(simulated.starting)
    return Replicas(
        running=simulated.running, starting=starting, requested=simulated.running + starting
    )


def _scale(simulated: SimulatedFleet, change: int, start_ms: int) -> None:
    if change > 0:
        simulated.grow(change, start_ms=start_ms)
    else:
        simulated.shrink(-change)


def _result(simulated: SimulatedFleet, changes: _Changes, slots: int) -> Backtest:
    unordered = pa.py_buffer(simulated.ages)
    ages = _numbers(
        pa.Array.from_buffers(pa.int64(), len(simulated.ages), [None, unordered]).sort()
    )
    return Backtest(
        messages=simulated.arrived,
        unfinished=simulated.backlog,
        age_p50_ms=percentile(ages, 0.5),
        age_p99_ms=percentile(ages, 0.99),
        age_max_ms=ages[-1] if ages else None,
        clear_max_ms=simulated.clear_max_ms,
        backlog_max=simulated.backlog_max,
        workers_max=changes.workers_max,
        worker_hours=simulated.slot_ms / slots / HOUR,
        changes=changes.changes,
        flaps=changes.flaps,
    )


def percentile(ordered: Sequence[int], share: float) -> int | None:
    """The value that this share does not exceed."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else None


def _numbers(column: pa.Array | pa.ChunkedArray) -> memoryview:
    """A view of a column of whole numbers without nulls."""
    values = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    every = memoryview(values.buffers()[1] or b"").cast("q")
    return every[values.offset : values.offset + len(values)]
