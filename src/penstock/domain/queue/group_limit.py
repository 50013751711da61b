"""Limits per group: only as many messages of a group as it may have are admitted.

    HELD_BACK ──────▶ ADMITTED ──────▶ leased ──────▶ ended, or HELD_BACK again on redelivery

Admitted are leased messages, those that can be claimed, and those that can be claimed at a set
instant, when the rate allows it (they wait until then).  The number admitted is always counted from
the messages themselves: a separate permit could get lost.

Claims pay for the rate.  What is admitted and unclaimed never exceeds what the bucket can pay: the
n-th message waits for the instant at which the bucket holds n.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.domain.queue import rate as pace
from penstock.domain.queue.rate import Bucket, Rate

# Values of Message.gate.
NO_GATE = 0  # not limited
OPEN = 1
SHUT = 2

MAX_OPEN = 10_000  # they are counted whenever one of them ends


def room(
    *, max_leased: int | None, rate: Rate | None, leased: int, unclaimed: int, most: int
) -> int:
    """How many more of a group may be admitted; `most`: there are no more."""
    if max_leased is not None:
        most = min(most, max_leased - leased - unclaimed)
    if rate is not None:
        most = min(most, rate.burst - unclaimed)
    return max(0, most)


def instants(
    rate: Rate | None, bucket: Bucket, *, unclaimed: int, count: int, now: int
) -> Iterator[int]:
    """When each of the next admitted messages can be claimed."""
    for place in range(unclaimed + 1, unclaimed + count + 1):
        yield now if rate is None else pace.available_at(bucket, rate, place, now=now)
