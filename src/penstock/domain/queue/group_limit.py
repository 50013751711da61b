"""Limits per group: how many messages of a group are admitted.

    HELD_BACK ──────▶ ADMITTED ──────▶ leased ──────▶ ended, or HELD_BACK again on redelivery

Leased messages are admitted, and so are messages that can be claimed now or at a set instant, when
the rate allows it (they wait until then).  The number of admitted messages is always counted from
the messages themselves, because a separate counter could get out of step.

Claims are charged to the rate.  The bucket always covers all admitted and unclaimed messages: the
n-th of them waits until the bucket holds credit for n.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.domain.queue import rate as pace
from penstock.domain.queue.rate import Bucket, Rate

# Values of Message.gate.
NO_GATE = 0  # not limited
ADMITTED = 1
HELD_BACK = 2

MAX_ADMITTED = 10_000  # they are counted whenever one of them ends


def room(
    *, max_leased: int | None, rate: Rate | None, leased: int, unclaimed: int, most: int
) -> int:
    """How many more messages of a group may be admitted, at most `most`."""
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
