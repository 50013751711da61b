"""Which queue is next: a line of those that may have something, each once per round.

                 hint                take
    (unknown) ─────────▶ in line ───────────▶ taken ──▶ back, in line again
                          ▲    ▲                 ├────▶ parked until an instant: it backs off
              its instant │    │ its route has   ├────▶ waiting until its route has room
              or a hint   │    │ room again      └────▶ forgotten: nothing is there
                        parked waiting

Pure, and it knows numbers of queues and names of routes only.  A queue is in one of these places at
a time, so nothing is looked at twice at once, and whoever has been served goes behind the others.
"""

from __future__ import annotations

import heapq
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable

from penstock.domain.delivery.bulkhead import Bulkhead
from penstock.domain.delivery.route import DEFAULT_TIMEOUT_MS

_MOST_KNOWN = 100_000  # queues whose routes are remembered

LimitOf = Callable[[str], int | None]  # how many requests of a route may be under way


class Line:
    def __init__(
        self, *, most: int, limit_of: LimitOf, is_shared: Callable[[], bool] = lambda: False
    ) -> None:
        """`most`: queues that may be taken at one time; `is_shared`: by more than one route."""
        self._most = most
        self._limit_of = limit_of
        self._is_shared = is_shared
        self._bulkhead = Bulkhead(most)
        self._line: OrderedDict[int, None] = OrderedDict()  # in order of their turns
        self._taken: dict[int, bool] = {}  # did a hint come meanwhile?
        self._parked: dict[int, int] = {}
        self._instants: list[tuple[int, int]] = []  # heap of those parked; some are out of date
        self._waiting: dict[str, deque[int]] = {}  # by route
        self._waits: set[int] = set()
        self._routes: dict[int, str] = {}  # what a queue's last message went to

    @property
    def room(self) -> int:
        return self._most - len(self._taken)

    @property
    def is_empty(self) -> bool:
        """Nobody is in line now; others may be parked, or wait."""
        return not self._line

    def begin_step(self, *, now: int) -> None:
        self._bulkhead.begin_step(now=now)

    def hint(self, queue_no: int) -> None:
        """It may have something now, whatever was known of it."""
        if queue_no in self._taken:
            self._taken[queue_no] = True
        elif queue_no not in self._waits:
            self._parked.pop(queue_no, None)
            self._line.setdefault(queue_no)

    def suggest(self, queue_nos: Iterable[int]) -> None:
        """A look from afar: whoever is parked has its reasons."""
        for queue_no in queue_nos:
            if queue_no not in self._parked and queue_no not in self._taken:
                self.hint(queue_no)

    def wake_parked(self, *, now: int) -> None:
        while self._instants and self._instants[0][0] <= now:
            until, queue_no = heapq.heappop(self._instants)
            if self._parked.get(queue_no) == until:
                self.hint(queue_no)

    def next_instant(self) -> int | None:
        """When the next parked one has its turn."""
        while self._instants and self._parked.get(self._instants[0][1]) != self._instants[0][0]:
            heapq.heappop(self._instants)
        return self._instants[0][0] if self._instants else None

    def take(self) -> list[int]:
        """As many as there is room for; those whose route has none go aside and wait for it."""
        self._let_in()
        taken: list[int] = []
        wanted: Counter[str] = Counter()
        while self._line and len(taken) < self.room:
            queue_no, _ = self._line.popitem(last=False)
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
        """A taken one wants to go to that route; False: there is no room, and it waits for it."""
        if len(self._routes) >= _MOST_KNOWN:
            self._routes.clear()
        self._routes[queue_no] = route
        if not self._room_of(route):
            self._taken.pop(queue_no, None)
            self._wait(queue_no, route)
            return False
        self._bulkhead.enter(queue_no, route, timeout_ms=timeout_ms)
        return True

    def is_waiting(self, queue_no: int) -> bool:
        """For room on its route."""
        return queue_no in self._waits

    def back(self, queue_no: int) -> None:
        """Served: behind all others, because there may be more."""
        self._leave(queue_no)
        self._line.setdefault(queue_no)

    def park(self, queue_no: int, until: int) -> None:
        """Nothing before that instant, unless a hint has come or comes."""
        if self._leave(queue_no):
            self._line.setdefault(queue_no)
        else:
            self._parked[queue_no] = until
            heapq.heappush(self._instants, (until, queue_no))

    def rest(self, queue_no: int) -> None:
        """Nothing is there, or nothing may go, unless a hint has come meanwhile."""
        if self._leave(queue_no, is_ended=False):
            self._line.setdefault(queue_no)

    def forget(self, queue_no: int) -> None:
        """It is no more."""
        self._leave(queue_no, is_ended=False)
        self._routes.pop(queue_no, None)

    def _leave(self, queue_no: int, *, is_ended: bool = True) -> bool:
        """Tells whether a hint came while it was taken."""
        self._bulkhead.leave(queue_no, is_ended=is_ended)
        return self._taken.pop(queue_no, False)

    def _let_in(self) -> None:
        """Whoever waits for a route has waited its turn already: it goes to the front."""
        total = 0
        for route in list(self._waiting):
            waiting = self._waiting[route]
            count = min(self._room_of(route, total=total), max(0, self.room - total), len(waiting))
            total += count
            first = [waiting.popleft() for _ in range(count)]
            for queue_no in reversed(first):
                self._waits.discard(queue_no)
                self._line[queue_no] = None
                self._line.move_to_end(queue_no, last=False)
            if not waiting:
                del self._waiting[route]

    def _wait(self, queue_no: int, route: str) -> None:
        self._waits.add(queue_no)
        self._waiting.setdefault(route, deque()).append(queue_no)

    def _room_of(self, route: str, *, wanted: int = 0, total: int = 0) -> int:
        return self._bulkhead.room(
            route,
            limit=self._limit_of(route),
            is_shared=self._is_shared(),
            wanted=wanted,
            total=total,
        )
