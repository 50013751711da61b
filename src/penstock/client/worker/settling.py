"""What a worker is to do, with what its application says filled in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from penstock.domain.errors import InvalidRequest
from penstock.domain.queue.queue import check_name
from penstock.worker.assignment import LEAST_MEMORY_BYTES, Order

if TYPE_CHECKING:
    from penstock.client.app import Penstock

_SHORTEST_LEASE_MS = 1_000


def settled(app: Penstock, order: Order) -> Order:
    """With the application's own queues if none are named.  Raises InvalidRequest."""
    queues = order.queues or tuple(app.queues)
    if not queues:
        raise InvalidRequest("the application has no jobs, and no queues were named")
    for name in queues:
        check_name(name)
    if order.slots < 1 or (order.prefetch or 0) < 0 or order.drain_ms < 0:
        raise InvalidRequest("slots are 1 or more, prefetch and drain_for 0 or more")
    if order.lease_ms < _SHORTEST_LEASE_MS:
        raise InvalidRequest(f"the lease of a worker is at least {_SHORTEST_LEASE_MS} ms")
    if order.max_jobs is not None and order.max_jobs < 1:
        raise InvalidRequest(f"max_jobs is 1 or more, not {order.max_jobs}")
    if order.max_memory_bytes is not None and order.max_memory_bytes < LEAST_MEMORY_BYTES:
        raise InvalidRequest(
            f"max_memory is {LEAST_MEMORY_BYTES} bytes or more, not {order.max_memory_bytes}"
        )
    return msgspec.structs.replace(order, queues=queues)
