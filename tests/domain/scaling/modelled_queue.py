"""A queue and its workers as a model, a second at a time, under analyser and governor.

Each worker handles `rate` messages a second, first come first served, and needs `start_s` seconds
before it handles any.  Half-finished work of a worker that is stopped goes back to the queue.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import pairwise

from penstock.domain.scaling.fleet import Fleet
from penstock.domain.scaling.fleet_run import FleetReading, FleetState, record_scaling, run
from penstock.domain.scaling.recommendation import Profile, Replicas, Sample

Arrivals = Callable[[int], float]  # messages a second, at a second


class ModelledQueue:
    def __init__(
        self, fleet: Fleet, profile: Profile, *, rate: float = 1.0, start_s: int = 0
    ) -> None:
        self.fleet = fleet
        self.profile = profile
        self._rate = rate
        self._start_s = start_s
        self._state = FleetState()
        self._line: deque[int] = deque()  # seconds of arrival
        self._coming = 0.0
        self._going = 0.0
        self._consumed = self._arrived = 0  # since the last look
        self._started: list[int] = []  # seconds at which workers were asked for
        self.second = 0
        self.waits: list[tuple[int, int]] = []  # second of the end, and how long it waited
        self.changes: list[tuple[int, int]] = []  # second and change
        self.counts: list[int] = []  # replicas, per second
        self.backlogs: list[int] = []

    def play(self, arrivals: Arrivals, seconds: int) -> None:
        for _ in range(seconds):
            self._arrive(arrivals(self.second))
            self._work()
            if self.second % (self.fleet.interval_ms // 1_000) == 0:
                self._decide()
            self.counts.append(len(self._started))
            self.backlogs.append(len(self._line))
            self.second += 1

    # ---- what tests ask about

    def longest_wait(self, since: int = 0) -> int:
        return max((wait for at, wait in self.waits if at >= since), default=0)

    def turns(self) -> int:
        """How often it went down after up, or up after down."""
        signs = [change > 0 for _, change in self.changes]
        return sum(1 for one, other in pairwise(signs) if one != other)

    # ---- a second

    def _arrive(self, rate: float) -> None:
        self._coming += rate
        while self._coming >= 1:
            self._coming -= 1
            self._line.append(self.second)
            self._arrived += 1

    def _work(self) -> None:
        self._going += self._rate * self._running
        while self._going >= 1:
            self._going -= 1
            if not self._line:
                self._going = 0.0  # who waits for work saves none up
                break
            self._consumed += 1
            self.waits.append((self.second, self.second - self._line.popleft()))

    @property
    def _running(self) -> int:
        return sum(1 for at in self._started if self.second - at >= self._start_s)

    def _decide(self) -> None:
        interval_s = self.fleet.interval_ms // 1_000
        running, total = self._running, len(self._started)
        reading = FleetReading(
            replicas=Replicas(running=running, starting=total - running, requested=total),
            sample=Sample(
                ready=len(self._line),
                consume_rate=self._consumed / interval_s,
                publish_rate=self._arrived / interval_s,
            ),
        )
        self._consumed = self._arrived = 0
        now = self.second * 1_000
        self._state, decision = run(self._state, reading, self.fleet, self.profile, [], now=now)
        if decision.change:
            self.changes.append((self.second, decision.change))
            self._state = record_scaling(self._state, decision, self.fleet, now=now)
            kept = sorted(self._started)[: decision.wanted]
            self._started = kept + [self.second] * (decision.wanted - len(kept))
