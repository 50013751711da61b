"""How routes share a node's slots, so that a route that hangs does not starve the others.

A slot is one request under way.  A route may take another slot while it has fewer than a multiple
of the slots that stay free beyond a reserve (the dynamic threshold by which switches share
buffers):

    own + 1 <= share * (free - reserve)

Of 200 slots, with a share of 4, one busy route takes 144, and the next one may take 29 of those
that are left.  The reserve is for routes without a request under way: each of them may take one
slot as long as any is free.  A single route may take all slots.

A route whose requests hang keeps its slots until they time out, so its share shrinks with the
fraction of its requests that are slow, of those under way and of the latest that ended.  If all are
slow it may have 36 of 200 slots; quick answers restore its share.
"""

from __future__ import annotations

import msgspec

from penstock.domain.limits import SECOND

SLOW_AFTER_MS = 10 * SECOND  # a request without an answer for this long is slow
FULL_SHARE = 4.0
SLOW_SHARE = 0.25
_RESERVE = 10  # one slot in this many
_WEIGHT = 1 / 16  # of the latest request that ended, in the slowness of its route
_FORGOTTEN = 0.01


class _Load(msgspec.Struct):
    """The requests of a route that are under way, and how slow it was lately."""

    slow_at: dict[int, int] = {}  # by request: when it becomes slow
    hanging: float = 0.0  # fraction of the requests under way that are slow
    slowness: float = 0.0  # fraction of the latest ended requests that were slow

    @property
    def share(self) -> float:
        return FULL_SHARE + (SLOW_SHARE - FULL_SHARE) * max(self.hanging, self.slowness)


_IDLE = _Load()


class Bulkhead:
    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._reserve = max(1, slots // _RESERVE)
        self._loads: dict[str, _Load] = {}
        self._routes: dict[int, str] = {}  # by request
        self._now = 0

    def begin_step(self, *, now: int) -> None:
        """Advance the time: some requests under way may have become slow."""
        self._now = now
        for route, load in list(self._loads.items()):
            if load.slow_at:
                slow = sum(at <= now for at in load.slow_at.values())
                load.hanging = slow / len(load.slow_at)
            elif load.slowness < _FORGOTTEN:
                del self._loads[route]
            else:
                load.hanging = 0.0

    def free_slots(
        self, route: str, *, limit: int | None, is_shared: bool, wanted: int = 0, total: int = 0
    ) -> int:
        """How many more requests the route may begin.

        `limit`: the route's own limit, if it has one.  `wanted` and `total`: slots about to be
        taken, by this route and by all routes.
        """
        load = self._loads.get(route, _IDLE)
        own = wanted + len(load.slow_at)
        free_slots = free = self._slots - len(self._routes) - total
        if is_shared:
            free_slots = int((load.share * (free + 1 - self._reserve) - own) // (1 + load.share))
            if own == 0:
                free_slots = max(free_slots, 1)
        if limit is not None:
            free_slots = min(free_slots, limit - own)
        return max(0, min(free_slots, free))

    def enter(self, request: int, route: str, *, timeout_ms: int) -> None:
        load = self._loads.setdefault(route, _Load())
        # A request with a short timeout would end before SLOW_AFTER_MS makes it slow.
        load.slow_at[request] = self._now + min(SLOW_AFTER_MS, timeout_ms // 2)
        self._routes[request] = route

    def leave(self, request: int, *, is_ended: bool) -> None:
        """`is_ended`: it was sent and has ended; otherwise it counts as neither slow nor quick."""
        route = self._routes.pop(request, None)
        if route is None:
            return
        load = self._loads[route]
        is_slow = self._now >= load.slow_at.pop(request)
        if is_ended:
            load.slowness += _WEIGHT * (is_slow - load.slowness)
