"""Where the ready messages of a queue may be, if most of its index leads to dead rows.

A claim reads the index of ready messages from its beginning, in the order (priority, position,
order number).  Claimed messages leave dead entries there, until vacuum removes them.  As claims
advance, so does a *floor* for each priority: below it there are dead entries only, and *points*,
the places of messages that were put back or appeared there late.  A claim reads the points and what
follows the floors, and between the floors all other priorities.

A send may take its number before others and commit after them.  So a floor is set where claims were
some looks ago, if the look finds nothing visible below, and places of the store's own sends that
turn out to be below become points.  A transaction of another node that takes longer is found by the
next full look, which reads everything.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

Place = tuple[int, int, int]  # priority, position, order number
Part = tuple[Place, int | None]  # from this place up to the end of this priority; None: a point

MAX_POINTS = 200
_SMALL = -(1 << 31)
_FIRST = -(1 << 63)
_LARGE = (1 << 31) - 1
LOWEST: Place = (_SMALL, _FIRST, _FIRST)
HIGHEST: Place = (_LARGE, -_FIRST, -_FIRST)
EVERYTHING: Sequence[Part] = ((LOWEST, _LARGE),)
_SETTLING = 2  # looks: transactions that began before them have probably ended
_KEPT_FOR = 20  # looks: a place is added before its transaction commits


class FrontParts:
    """The parts to read of the index of one queue, or of one kind of messages in it."""

    def __init__(self) -> None:
        self._floors: dict[int, Place] = {}  # by priority
        self._points: set[Place] = set()
        self._arrivals: dict[Place, int] = {}  # and the look before which each was added
        self._claimed: dict[int, Place] = {}  # the last place claimed, by priority
        self._before: deque[dict[int, Place]] = deque(maxlen=_SETTLING)  # … as of the last looks
        self._looks = 0
        self.parts: Sequence[Part] = EVERYTHING

    def add(self, place: Place) -> None:
        """A message has become ready in this place."""
        self._arrivals[place] = self._looks
        if place < self._floors.get(place[0], LOWEST):
            self._points.add(place)
            if len(self._points) > MAX_POINTS:
                self._lower_floors()
            self._set_parts()

    def claimed(self, places: Iterable[Place]) -> None:
        """Messages were claimed from these places."""
        size = len(self._points)
        for place in places:
            if place > self._claimed.get(place[0], LOWEST):
                self._claimed[place[0]] = place
            self._arrivals.pop(place, None)
            self._points.discard(place)
        if len(self._points) < size:
            self._set_parts()

    def looked(self, visible: Sequence[Place], *, is_cut: bool, is_full: bool) -> None:
        """Learn from a look: the first visible places of what was read.

        `is_cut`: there may be more.  `is_full`: everything was read, not only `parts`.
        """
        end = visible[-1] if is_cut and visible else HIGHEST
        known = {} if is_full else self._floors
        claimed = self._before[0] if len(self._before) == _SETTLING else {}
        self._before.append(dict(self._claimed))
        self._floors = {}
        for priority in claimed.keys() | known.keys():
            before = known.get(priority, LOWEST)
            settled = max(before, claimed.get(priority, LOWEST))
            floor = settled if settled <= end else max(before, end)
            if floor[0] == priority:
                self._floors[priority] = floor
        self._looks += 1
        late = self._looks - _KEPT_FOR
        self._arrivals = {place: look for place, look in self._arrivals.items() if look > late}
        unread = [place for place in self._points if place > end and not is_full]
        self._points = {
            place
            for place in (*visible, *self._arrivals, *unread)
            if place < self._floors.get(place[0], LOWEST)
        }
        if len(self._points) > MAX_POINTS:
            self._lower_floors()
        self._set_parts()

    def _lower_floors(self) -> None:
        """Too many points: read everything from the first of them on."""
        for priority, floor in self._floors.items():
            points = [place for place in self._points if place[0] == priority]
            self._floors[priority] = min((floor, *points))
        self._points = set()

    def _set_parts(self) -> None:
        points = sorted(self._points)
        parts: list[Part] = []
        begin = LOWEST
        for priority, floor in sorted(self._floors.items()):
            parts.append((begin, priority - 1))
            parts += [(place, None) for place in points if place[0] == priority]
            begin = floor
        parts.append((begin, _LARGE))
        self.parts = parts
