"""Which queue is next: queues that may have a delivery, each once per round.

                 wake                take
    (unknown) ─────────▶ queued ────────────▶ taken ──▶ back: queued again, behind the others
                          ▲    ▲                 ├────▶ parked until an instant: it backs off
              its instant │    │ its route has   ├────▶ waiting until its route has room
             or a wake-up │    │ room again      └────▶ forgotten: it is empty
                        parked waiting

Pure; it knows only queue numbers and route names.  A queue is in one of these places at a time, so
no queue is claimed from twice at once, and a queue that was served goes behind the others.
"""

from __future__ import annotations

import heapq
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable

from penstock.domain.delivery.bulkhead import Bulkhead
from penstock.domain.delivery.route import DEFAULT_TIMEOUT_MS

_MAX_KNOWN = 100_000  # queues whose routes are remembered

LimitOf = Callable[[str], int | None]  # how many requests of a route may be in flight


class RoundRobin:
    def __init__(
        self, *, most: int, limit_of: LimitOf, is_shared: Callable[[], bool] = lambda: False
    ) -> None:
        """`most`: queues that may be taken at a time; `is_shared`: there is more than one route."""
        self._most = most
        self._limit_of = limit_of
        self._is_shared = is_shared
        self._bulkhead = Bulkhead(most)
        self._queue: OrderedDict[int, None] = OrderedDict()  # the next one first
        self._taken: dict[int, bool] = {}  # True: a wake-up came meanwhile
        self._parked: dict[int, int] = {}
        self._instants: list[tuple[int, int]] = []  # heap of parked queues; some out of date
        self._waiting: dict[str, deque[int]] = {}  # by route
        self._waits: set[int] = set()
        self._routes: dict[int, str] = {}  # the route of a queue's last message

    @property
    def room(self) -> int:
        return self._most - len(self._taken)

    @property
    def is_empty(self) -> bool:
        """True if no queue is queued; some may be parked or waiting for a route."""
        return not self._queue

    def begin_step(self, *, now: int) -> None:
        self._bulkhead.begin_step(now=now)

    def wake(self, queue_no: int) -> None:
        """The queue may have a delivery now, even if it was parked."""
        if queue_no in self._taken:
            self._taken[queue_no] = True
        elif queue_no not in self._waits:
            self._parked.pop(queue_no, None)
            self._queue.setdefault(queue_no)

    def add_scanned(self, queue_nos: Iterable[int]) -> None:
        """The scan saw ready messages in these queues; parked ones stay parked."""
        for queue_no in queue_nos:
            if queue_no not in self._parked and queue_no not in self._taken:
                self.wake(queue_no)

    def wake_parked(self, *, now: int) -> None:
        while self._instants and self._instants[0][0] <= now:
            until, queue_no = heapq.heappop(self._instants)
            if self._parked.get(queue_no) == until:
                self.wake(queue_no)

    def next_instant(self) -> int | None:
        """The instant at which the next parked queue is due."""
        while self._instants and self._parked.get(self._instants[0][1]) != self._instants[0][0]:
            heapq.heappop(self._instants)
        return self._instants[0][0] if self._instants else None

    def take(self) -> list[int]:
        """Take as many queues as there is room for; those whose route is full wait for it."""
        self._admit_waiting()
        taken: list[int] = []
        wanted: Counter[str] = Counter()
        while self._queue and len(taken) < self.room:
            queue_no, _ = self._queue.popitem(last=False)
            route = self._routes.get(queue_no)
            if route is None:
                taken.append(queue_no)
            elif self._room_of(route, wanted=wanted[route], total=len(taken)):
                wanted[route] += 1
                taken.append(queue_no)
            else:
                self._wait(queue_no, route)
        self._taken.update(dict.fromkeys(taken, False))
        return taken

    def enter(self, queue_no: int, route: str, *, timeout_ms: int = DEFAULT_TIMEOUT_MS) -> bool:
        """Reserve room on the route for a taken queue; False: it is full, and the queue waits."""
        if len(self._routes) >= _MAX_KNOWN:
            self._routes.clear()
        self._routes[queue_no] = route
        if not self._room_of(route):
            self._taken.pop(queue_no, None)
            self._wait(queue_no, route)
            return False
        self._bulkhead.enter(queue_no, route, timeout_ms=timeout_ms)
        return True

    def is_waiting(self, queue_no: int) -> bool:
        """True if the queue waits for room on its route."""
        return queue_no in self._waits

    def is_busy(self, queue_no: int) -> bool:
        """True if the queue is queued or taken, or waits for room on its route."""
        return queue_no in self._taken or queue_no in self._queue or queue_no in self._waits

    def put_behind(self, queue_no: int) -> None:
        """The queue was served and may have more: put it behind all others."""
        self._leave(queue_no)
        self._queue.setdefault(queue_no)

    def park(self, queue_no: int, until: int) -> None:
        """Park the queue until that instant, unless a wake-up has come or comes."""
        if self._leave(queue_no):
            self._queue.setdefault(queue_no)
        else:
            self._parked[queue_no] = until
            heapq.heappush(self._instants, (until, queue_no))

    def drop_idle(self, queue_no: int) -> None:
        """The queue is empty or held: drop it, unless a wake-up has come meanwhile."""
        if self._leave(queue_no, is_ended=False):
            self._queue.setdefault(queue_no)

    def forget(self, queue_no: int) -> None:
        """The queue was removed."""
        self._leave(queue_no, is_ended=False)
        self._routes.pop(queue_no, None)

    def _leave(self, queue_no: int, *, is_ended: bool = True) -> bool:
        """Returns whether a wake-up came while the queue was taken."""
        self._bulkhead.leave(queue_no, is_ended=is_ended)
        return self._taken.pop(queue_no, False)

    def _admit_waiting(self) -> None:
        """Move queues that waited for room on a route to the front."""
        total = 0
        for route in list(self._waiting):
            waiting = self._waiting[route]
            count = min(self._room_of(route, total=total), max(0, self.room - total), len(waiting))
            total += count
            first = [waiting.popleft() for _ in range(count)]
            for queue_no in reversed(first):
                self._waits.discard(queue_no)
                self._queue[queue_no] = None
                self._queue.move_to_end(queue_no, last=False)
            if not waiting:
                del self._waiting[route]

    def _wait(self, queue_no: int, route: str) -> None:
        self._waits.add(queue_no)
        self._waiting.setdefault(route, deque()).append(queue_no)

    def _room_of(self, route: str, *, wanted: int = 0, total: int = 0) -> int:
        return self._bulkhead.free_slots(
            route,
            limit=self._limit_of(route),
            is_shared=self._is_shared(),
            wanted=wanted,
            total=total,
        )
