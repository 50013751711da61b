"""Limits per group: only as many of its messages as the group may have are let through.

    SHUT ──────▶ OPEN ──────▶ leased ──────▶ ended, or SHUT again when it comes back

Open are those that somebody holds, those that can be claimed, and those that can be at a set
instant, when the rate allows it (they wait until then).  How many are open is always counted from
the messages themselves: a permit that is kept apart could get lost.

The rate is paid by claims.  What is open and unclaimed never exceeds what the bucket can pay: the
n-th of them waits for the instant at which the bucket holds n.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.domain.queue import rate as pace
from penstock.domain.queue.rate import Bucket, Rate

# What Message.gate says.
NO_GATE = 0  # nothing limits it
OPEN = 1
SHUT = 2

MAX_OPEN = 10_000  # they are counted whenever one of them ends


def room(
    *, max_leased: int | None, rate: Rate | None, leased: int, unclaimed: int, most: int
) -> int:
    """How many more of a group may be let through; `most`: there are no more."""
    if max_leased is not None:
        most = min(most, max_leased - leased - unclaimed)
    if rate is not None:
        most = min(most, rate.burst - unclaimed)
    return max(0, most)


def instants(
    rate: Rate | None, bucket: Bucket, *, unclaimed: int, count: int, now: int
) -> Iterator[int]:
    """When each of the next ones that are let through can be claimed."""
    for place in range(unclaimed + 1, unclaimed + count + 1):
        yield now if rate is None else pace.available_at(bucket, rate, place, now=now)
