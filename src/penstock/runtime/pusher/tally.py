"""What this node has pushed, by route: how many deliveries ended how, and how long they took.

For metrics only.  Written by the pusher, read by whoever shows it, so it is added to and never
changed otherwise.
"""

from __future__ import annotations

from bisect import bisect_left
from enum import StrEnum

BUCKETS_MS = (5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 120_000)


class Ended(StrEnum):
    """How one attempt ended."""

    SUCCESS = "success"
    FAILURE = "failure"  # to be tried again
    GIVEN_UP = "given_up"  # its sender wants this status tried no more


class OfRoute:
    def __init__(self) -> None:
        self.counts = dict.fromkeys(Ended, 0)
        self.took_ms = 0
        # Of each bucket those that took no longer than it and longer than the one before; the last
        # one is of those that took longer than all.
        self.buckets = [0] * (len(BUCKETS_MS) + 1)

    @property
    def total(self) -> int:
        return sum(self.counts.values())


class Tally:
    def __init__(self) -> None:
        self._routes: dict[str, OfRoute] = {}

    def note(self, pattern: str, ended: Ended, *, took_ms: int) -> None:
        of_route = self._routes.get(pattern)
        if of_route is None:
            of_route = self._routes[pattern] = OfRoute()
        of_route.counts[ended] += 1
        of_route.took_ms += took_ms
        of_route.buckets[bisect_left(BUCKETS_MS, took_ms)] += 1

    def all(self) -> list[tuple[str, OfRoute]]:
        """By pattern."""
        return sorted(self._routes.copy().items(), key=lambda pair: pair[0])
