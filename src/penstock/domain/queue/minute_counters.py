"""Counters of queues, sampled every minute, and the graphs drawn from them.

A sample holds the state at its instant and the totals since the beginning, so samples can be
dropped without changing the differences between the others.  Queues without changes are not
sampled: a missing sample means no change.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from penstock.domain.errors import InvalidRequest
from penstock.domain.limits import DAY, HOUR, MINUTE
from penstock.domain.queue.queue import Counts

ALL = 0  # stands for all queues together
MAX_POINTS = 500
MAX_STEP_MS = 366 * DAY
MINUTES_KEPT_MS = 3 * DAY  # after that the last sample of each hour is enough
_STEPS = (MINUTE, 5 * MINUTE, 15 * MINUTE, HOUR, 3 * HOUR, 6 * HOUR, DAY, 7 * DAY)
TOTALS = tuple(name for name in Counts.__struct_fields__ if name.endswith("_total"))


class Latency(msgspec.Struct, frozen=True):
    """Times of finished messages: until they were claimed, and from then until they were done.

    The first counts from the send, so a requested delay is included.
    """

    wait_p50_ms: int | None = None
    wait_p95_ms: int | None = None
    work_p50_ms: int | None = None
    work_p95_ms: int | None = None


class MinuteCounters(msgspec.Struct, frozen=True):
    """Fields are in column order."""

    queue_no: int
    minute_at: int
    waiting: int
    ready: int
    leased: int
    dead: int
    sent_total: int
    done_total: int
    dead_total: int
    cancelled_total: int
    failed_total: int
    expired_total: int
    claimed_total: int
    oldest_ready_at: int | None = None
    wait_p50_ms: int | None = None
    wait_p95_ms: int | None = None
    work_p50_ms: int | None = None
    work_p95_ms: int | None = None

    @property
    def is_empty(self) -> bool:
        return not (self.waiting or self.ready or self.leased or self.dead)


class Step(msgspec.Struct, frozen=True):
    """The samples of one step of a graph: the last one, and what the others add to it."""

    step_no: int  # the first one begins at the epoch
    last: MinuteCounters
    most_ready: int


class GraphPoint(msgspec.Struct, frozen=True, kw_only=True):
    """One step of a graph: the state at its end, and what happened in it."""

    at: int  # where it begins
    waiting: int
    ready: int
    leased: int
    dead: int
    most_ready: int
    oldest_ready_at: int | None
    latency: Latency
    happened: dict[str, int]  # by the names of the totals


def percentile(ordered: Sequence[int], percent: int) -> int:
    """The smallest value that at least this percentage of the values do not exceed."""
    place = max(0, -(-len(ordered) * percent // 100) - 1)
    return ordered[place]


def latency_of(times: Sequence[tuple[int, int]]) -> Latency:
    """From pairs of waiting time and working time."""
    if not times:
        return Latency()
    waits = sorted(wait for wait, _ in times)
    works = sorted(work for _, work in times)
    return Latency(
        percentile(waits, 50), percentile(waits, 95), percentile(works, 50), percentile(works, 95)
    )


def choose_step(from_at: int, to_at: int, step_ms: int | None = None) -> int:
    """The finest step that gives at most MAX_POINTS; raises InvalidRequest."""
    if not from_at < to_at:
        raise InvalidRequest("from must be before to")
    if step_ms is None:
        fitting = (step for step in _STEPS if (to_at - from_at) / step <= MAX_POINTS)
        step_ms = next(fitting, None)
        if step_ms is None:
            raise InvalidRequest("from and to are too far apart")
        return step_ms
    if step_ms < MINUTE or step_ms % MINUTE:
        raise InvalidRequest(f"step_ms must be a multiple of 60000, not {step_ms}")
    if step_ms > MAX_STEP_MS:
        raise InvalidRequest(f"step_ms must be at most {MAX_STEP_MS}, not {step_ms}")
    if (to_at - from_at) / step_ms > MAX_POINTS:
        raise InvalidRequest(f"this would be more than {MAX_POINTS} points; use a larger step_ms")
    return step_ms


def points(
    steps: Sequence[Step],
    *,
    before: MinuteCounters | None,
    is_new: bool,
    from_at: int,
    to_at: int,
    step_ms: int,
) -> list[GraphPoint]:
    """One point for each step from the first known one; a missing step repeats the one before.

    `before`: the last sample before them.  Without it, either the queue `is_new` (it was empty when
    others were sampled), or the changes in the first step are unknown.
    """
    by_no = {step.step_no: step for step in steps}
    known = before
    if known is None and steps:
        first = steps[0].last
        known = _nothing(first) if is_new else first
    if known is None:
        return []
    found: list[GraphPoint] = []
    first_no = from_at // step_ms if before is not None else min(by_no)
    for step_no in range(first_no, -(-to_at // step_ms)):
        step = by_no.get(step_no)
        found.append(_point(step_no * step_ms, known, step))
        known = known if step is None else step.last
    return found


def _point(at: int, known: MinuteCounters, step: Step | None) -> GraphPoint:
    last = known if step is None else step.last
    latency = Latency()
    if step is not None:
        latency = Latency(last.wait_p50_ms, last.wait_p95_ms, last.work_p50_ms, last.work_p95_ms)
    return GraphPoint(
        at=at,
        waiting=last.waiting,
        ready=last.ready,
        leased=last.leased,
        dead=last.dead,
        most_ready=last.ready if step is None else step.most_ready,
        oldest_ready_at=last.oldest_ready_at,
        latency=latency,
        happened={name: getattr(last, name) - getattr(known, name) for name in TOTALS},
    )


def _nothing(sample: MinuteCounters) -> MinuteCounters:
    return MinuteCounters(sample.queue_no, 0, *(0 for _ in range(11)))
