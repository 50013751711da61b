"""What other workers, limits or retries would have done with a queue's recorded messages.

    arrival ──▶ ready ──▶ running in a slot ──▶ done, or dead
                  ▲              │ failed or returned
                  └── pause ◀────┘

Messages arrive when they did and each attempt takes as long and ends as it did; what changes is the
number of slots, the limits of the queue, and what happens after a failure.  Free slots claim at
once, by priority and arrival, as a queue with standard ordering does; a message that comes back
keeps its place.  Pure: the caller passes the instants and the numbers that stand for chance.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence
from enum import StrEnum

import msgspec

from penstock.domain.limits import HOUR, MINUTE
from penstock.domain.message.retry import Backoff, delay_ms
from penstock.domain.queue import rate as rates
from penstock.domain.queue.rate import Rate
from penstock.pipeline.replays.fleet import percentile

BUCKETS = 60  # of the backlog over time
# An added message arrives between the messages this many places before and after its original, so
# that it neither follows the original closely nor changes the rhythm of the day.
_NEIGHBOURS = 250
_NEAR_MS = 30 * MINUTE  # and at most this long before or after it


class AttemptEnd(StrEnum):
    DONE = "done"
    FAILED = "failed"  # counts, and is retried after a back-off
    RETURNED = "returned"  # released, snoozed or expired: neither


class RecordedAttempt(msgspec.Struct, frozen=True):
    work_ms: int
    end: AttemptEnd = AttemptEnd.DONE
    pause_ms: int = 0  # until the next attempt, as recorded


class RecordedMessage(msgspec.Struct, frozen=True):
    at: int  # when it arrived
    attempts: tuple[RecordedAttempt, ...]
    priority: int = 0


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    workers: int
    slots: int = 1  # of each worker
    max_leased: int | None = None
    rate: Rate | None = None
    backoff: Backoff | None = None  # None: pauses as recorded
    max_attempts: int | None = None  # None: as many attempts as recorded


class Waits(msgspec.Struct, frozen=True, kw_only=True):
    """From arrival to the first claim; None: no message was claimed."""

    mean_ms: float | None
    p50_ms: int | None
    p95_ms: int | None
    p99_ms: int | None
    max_ms: int | None


class BacklogPoint(msgspec.Struct, frozen=True):
    at: int  # the beginning of a period
    ready: int  # the most messages that waited for a slot in it


class Simulation(msgspec.Struct, frozen=True, kw_only=True):
    messages: int
    done: int
    dead: int
    attempts: int
    wait: Waits
    backlog_max: int
    backlog: list[BacklogPoint]
    utilisation: float  # share of the slots' time that was spent on attempts
    worker_hours: float
    ended_at: int  # when the last message had ended, or the period


def simulate(
    messages: Sequence[RecordedMessage],
    scenario: Scenario,
    *,
    from_at: int,
    to_at: int,
    chances: Iterator[float],
) -> Simulation:
    """Run until every message has ended; `messages` are in the order of arrival."""
    queue = _SimulatedQueue(messages, scenario, from_at=from_at, chances=chances)
    backlog = [(from_at, 0)]
    now = from_at
    while (at := queue.next_at()) < math.inf:
        now = int(at)
        queue.step(now)
        if queue.ready != backlog[-1][1]:
            backlog.append((now, queue.ready))
    ended_at = max(now, to_at)
    hours = scenario.workers * (ended_at - from_at) / HOUR
    slot_ms = hours * HOUR * scenario.slots
    return Simulation(
        messages=len(messages),
        done=queue.done,
        dead=queue.dead,
        attempts=queue.attempts,
        wait=waits_of(queue.waits),
        backlog_max=max(ready for _, ready in backlog),
        backlog=_sample_backlog(backlog, from_at, ended_at),
        utilisation=queue.work_ms / slot_ms if slot_ms else 0.0,
        worker_hours=hours,
        ended_at=ended_at,
    )


def waits_of(waits: Sequence[int]) -> Waits:
    ordered = sorted(waits)
    return Waits(
        mean_ms=sum(ordered) / len(ordered) if ordered else None,
        p50_ms=percentile(ordered, 0.5),
        p95_ms=percentile(ordered, 0.95),
        p99_ms=percentile(ordered, 0.99),
        max_ms=ordered[-1] if ordered else None,
    )


def scale(
    messages: Sequence[RecordedMessage], factor: float, chances: Iterator[float]
) -> list[RecordedMessage]:
    """`factor` times as many messages, with the same rhythm of day.

    Fewer: each is kept by chance.  More: copies arrive at a chance instant among the neighbours of
    the message, so that random arrivals stay random; messages that arrived at the same instant stay
    together, so that a burst stays a burst.
    """
    whole = int(factor)
    found: list[RecordedMessage] = []
    for place, message in enumerate(messages):
        count = whole + (next(chances) < factor - whole)
        if count:
            found.append(message)
        first, last = _neighbourhood(messages, place)
        for _ in range(count - 1):
            at = first + int(next(chances) * (last - first))
            found.append(msgspec.structs.replace(message, at=at))
    return sorted(found, key=lambda message: message.at)


def _neighbourhood(messages: Sequence[RecordedMessage], place: int) -> tuple[int, int]:
    """The instants between which a copy of this message may arrive."""
    at, last = messages[place].at, len(messages) - 1
    beside = [messages[other].at for other in (place - 1, place + 1) if 0 <= other <= last]
    if at in beside:
        return at, at
    before = messages[max(0, place - _NEIGHBOURS)].at
    after = messages[min(last, place + _NEIGHBOURS)].at
    return max(before, at - _NEAR_MS), min(after, at + _NEAR_MS)


def chances(seed: int = 1) -> Iterator[float]:
    """The same numbers in [0, 1) for the same seed, by splitmix64."""
    mask = (1 << 64) - 1
    state = seed
    while True:
        state = (state + 0x9E3779B97F4A7C15) & mask
        x = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & mask
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
        yield ((x ^ (x >> 31)) >> 11) / (1 << 53)


def peak_of(spans: Sequence[tuple[int, int]]) -> int:
    """The most attempts that ran at once: there were at least this many slots."""
    changes = sorted([(start, 1) for start, _ in spans] + [(end, -1) for _, end in spans])
    running = most = 0
    for _, change in changes:
        running += change
        most = max(most, running)
    return most


class _SimulatedQueue:
    def __init__(
        self,
        messages: Sequence[RecordedMessage],
        scenario: Scenario,
        *,
        from_at: int,
        chances: Iterator[float],
    ) -> None:
        self.waits: list[int] = []
        self.done = self.dead = self.attempts = self.work_ms = 0
        self._messages = messages
        self._scenario = scenario
        self._chances = chances
        slots = scenario.workers * scenario.slots
        self._most = slots if scenario.max_leased is None else min(slots, scenario.max_leased)
        self._bucket = None if scenario.rate is None else rates.full(scenario.rate, now=from_at)
        self._paced_at: float = math.inf  # when the rate allows the next claim
        self._arrived = 0
        # Heaps of places in `messages`, by what decides who is next.
        self._ready: list[tuple[int, int]] = []  # priority
        self._pausing: list[tuple[int, int]] = []  # end of the pause
        self._running: list[tuple[int, int]] = []  # end of the attempt
        self._tries = [0] * len(messages)
        self._failures = [0] * len(messages)

    @property
    def ready(self) -> int:
        return len(self._ready)

    def next_at(self) -> float:
        arrives = (
            self._messages[self._arrived].at if self._arrived < len(self._messages) else math.inf
        )
        heads = (heap[0][0] for heap in (self._pausing, self._running) if heap)
        return min(arrives, self._paced_at, *heads)

    def step(self, now: int) -> None:
        """All that happens at this instant: attempts end, messages become ready, slots claim."""
        while self._running and self._running[0][0] <= now:
            self._end(heapq.heappop(self._running)[1], now=now)
        while self._pausing and self._pausing[0][0] <= now:
            self._make_ready(heapq.heappop(self._pausing)[1])
        messages = self._messages
        while self._arrived < len(messages) and messages[self._arrived].at <= now:
            self._make_ready(self._arrived)
            self._arrived += 1
        self._claim(now)

    def _make_ready(self, place: int) -> None:
        heapq.heappush(self._ready, (self._messages[place].priority, place))

    def _claim(self, now: int) -> None:
        count = min(self._most - len(self._running), len(self._ready))
        self._paced_at = math.inf
        if self._bucket is not None and count:
            rate = self._scenario.rate
            assert rate is not None
            allowed = rates.available(self._bucket, rate, now=now)
            if allowed < count:
                count = allowed
                self._bucket = rates.spend(self._bucket, rate, count, now=now)
                self._paced_at = rates.available_at(self._bucket, rate, 1, now=now)
            else:
                self._bucket = rates.spend(self._bucket, rate, count, now=now)
        for _ in range(count):
            self._start(heapq.heappop(self._ready)[1], now=now)

    def _start(self, place: int, *, now: int) -> None:
        if not self._tries[place]:
            self.waits.append(now - self._messages[place].at)
        attempt = self._attempt(place)
        self._tries[place] += 1
        self.attempts += 1
        self.work_ms += attempt.work_ms
        heapq.heappush(self._running, (now + attempt.work_ms, place))

    def _attempt(self, place: int) -> RecordedAttempt:
        """Attempts beyond the recorded ones are like the last of these."""
        attempts = self._messages[place].attempts
        return attempts[min(self._tries[place], len(attempts) - 1)]

    def _end(self, place: int, *, now: int) -> None:
        attempts = self._messages[place].attempts
        tried = self._tries[place]
        attempt = attempts[min(tried, len(attempts)) - 1]
        if attempt.end is AttemptEnd.DONE:
            self.done += 1
            return
        pause_ms = attempt.pause_ms
        if attempt.end is AttemptEnd.FAILED:
            self._failures[place] += 1
            if self._is_dead(place):
                self.dead += 1
                return
            backoff = self._scenario.backoff
            if backoff is not None:
                failures, chance = self._failures[place], next(self._chances)
                pause_ms = delay_ms(backoff, failures=failures, dice=chance)
        elif tried >= len(attempts):  # given back, and cancelled before its next attempt
            self.done += 1
            return
        heapq.heappush(self._pausing, (now + pause_ms, place))

    def _is_dead(self, place: int) -> bool:
        most = self._scenario.max_attempts
        if most is None:
            return self._tries[place] >= len(self._messages[place].attempts)
        return self._failures[place] >= most


def _sample_backlog(
    backlog: Sequence[tuple[int, int]], from_at: int, to_at: int
) -> list[BacklogPoint]:
    """The most ready messages in each of BUCKETS periods of equal length."""
    width = max(1, -(-(to_at - from_at) // BUCKETS))
    most = [0] * max(1, -(-(to_at - from_at) // width))
    for (at, ready), (until, _) in zip(backlog, [*backlog[1:], (to_at, 0)], strict=True):
        first = min((at - from_at) // width, len(most) - 1)
        last = min((max(until - 1, at) - from_at) // width, len(most) - 1)
        for place in range(first, last + 1):
            most[place] = max(most[place], ready)
    return [BacklogPoint(from_at + place * width, ready) for place, ready in enumerate(most)]
