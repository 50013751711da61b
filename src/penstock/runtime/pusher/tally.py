"""Counts this node's deliveries by route and result, and how long they took.

For metrics only.  The pusher writes while other threads read, so counts are only ever added to.
"""

from __future__ import annotations

from bisect import bisect_left
from enum import StrEnum

BUCKETS_MS = (5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 120_000)


class PushResult(StrEnum):
    """How one attempt ended."""

    SUCCESS = "success"
    FAILURE = "failure"  # will be retried
    GIVEN_UP = "given_up"  # the sender's rules do not retry this status


class RouteTally:
    def __init__(self) -> None:
        self.counts = dict.fromkeys(PushResult, 0)
        self.took_ms = 0
        # Not cumulative: each bucket counts what exceeds the bucket before it; the last one counts
        # what exceeds all of them.
        self.buckets = [0] * (len(BUCKETS_MS) + 1)

    @property
    def total(self) -> int:
        return sum(self.counts.values())


class PushTally:
    def __init__(self) -> None:
        self._routes: dict[str, RouteTally] = {}

    def note(self, pattern: str, ended: PushResult, *, took_ms: int) -> None:
        of_route = self._routes.get(pattern)
        if of_route is None:
            of_route = self._routes[pattern] = RouteTally()
        of_route.counts[ended] += 1
        of_route.took_ms += took_ms
        of_route.buckets[bisect_left(BUCKETS_MS, took_ms)] += 1

    def all(self) -> list[tuple[str, RouteTally]]:
        """By pattern."""
        return sorted(self._routes.copy().items(), key=lambda pair: pair[0])
