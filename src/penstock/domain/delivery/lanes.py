"""Lanes: how the pusher has several deliveries of one queue in progress.

A lane is a number that stands for a queue and one of its places; the first lane has the number of
the queue.  A lane claims, sends and waits like a queue of its own.  When it gets a message, it
opens the next one, up to the concurrency of the endpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

_BITS = 48
_MASK = (1 << _BITS) - 1


def queue_of(lane: int) -> int:
    return lane & _MASK


def lanes_of(queue_no: int, count: int) -> Iterator[int]:
    return (queue_no | place << _BITS for place in range(count))


def idle_lane(queue_no: int, count: int, is_busy: Callable[[int], bool]) -> int | None:
    """The first lane that is not busy."""
    return next((lane for lane in lanes_of(queue_no, count) if not is_busy(lane)), None)
