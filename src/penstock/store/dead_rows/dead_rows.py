"""What the sessions of a store know about dead rows at the front of their queues.

Empty as long as vacuum keeps up.  `store/postgres/dead_row_watch.py` finds the queues in which
claims read many dead rows; from then on claims read only some parts of the index.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from penstock.domain.message.lifecycle import Message
from penstock.store.dead_rows.front_parts import FrontParts, Part, Place

Front = tuple[int, str | None]  # a queue, and the kind of messages; None: all


class LastClaim(msgspec.Struct, frozen=True):
    at: int
    due_at: int  # when its lease expires


class DueTimes:
    """From where on a queue may have leases that expire and messages that fall due."""

    def __init__(self) -> None:
        self.due_from = 0  # earlier ones are dead
        self.next_from = 0  # the first due date that was found; an earlier one may appear
        self._settled = LastClaim(0, 0)  # the last claim before the last look

    def begin_look(self, last: LastClaim) -> int:
        """The instant up to which a look searches: from then on something may be under way."""
        if last.at < self._settled.at:  # the clock was set back
            self.due_from = self.next_from = 0
            self._settled = LastClaim(0, 0)
        return self._settled.at

    def looked(self, first: int | None, following: int | None, last: LastClaim) -> None:
        """`first`: the first due date up to that instant; `following`: the first of all.

        Expiring leases and messages that fall due are found by the reaper even if `next_from` is
        too late, so it can be the end of the last lease when nothing is leased or waiting.
        """
        self.due_from = self._settled.at if first is None else first
        self.next_from = self._settled.due_at if following is None else following
        self._settled = last


class DeadRows:
    """Shared by all connections of a store, from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tracked: dict[Front, FrontParts] = {}
        self._due: dict[int, DueTimes] = {}
        self._recent: dict[Front, LastClaim] = {}  # fronts claimed from lately
        self.is_watched = False  # a thread looks for dead rows
        self.queues: frozenset[int] = frozenset()  # those with tracked fronts

    # For sessions.

    def parts(self, queue_no: int, kind: str | None) -> list[list[object]] | None:
        """The parts to read, as JSON values; None: everything."""
        found = self._tracked.get((queue_no, kind))
        return None if found is None else as_lists(found.parts)

    def due_from(self, queue_no: int) -> int:
        """No message that may fall due has an earlier due date."""
        found = self._due.get(queue_no)
        return 0 if found is None else found.due_from

    def next_from(self, queue_no: int) -> int:
        """The next due date is probably not earlier."""
        found = self._due.get(queue_no)
        return 0 if found is None else max(found.due_from, found.next_from)

    def due_floors(self) -> Mapping[int, int]:
        return {no: found.due_from for no, found in self._due.items()}

    def note_claim(
        self, queue_no: int, kinds: Iterable[str] | None, *, now: int, due_at: int
    ) -> None:
        """Claims read the front of this queue, or of these kinds."""
        last = LastClaim(now, due_at)
        for kind in (None,) if kinds is None else kinds:
            self._recent[queue_no, kind] = last

    def note_ready(self, queue_no: int, kind: str | None, place: Place) -> None:
        """Call it before the commit that makes the message claimable."""
        with self._lock:
            for front in ((queue_no, None), (queue_no, kind)):
                if front in self._tracked:
                    self._tracked[front].add(place)

    def note_claimed(self, queue_no: int, messages: Iterable[Message]) -> None:
        """Call it after the commit."""
        with self._lock:
            places: dict[Front, list[Place]] = {}
            for m in messages:
                place = place_of(m)
                places.setdefault((queue_no, None), []).append(place)
                if m.kind is not None:
                    places.setdefault((queue_no, m.kind), []).append(place)
            for front, claimed in places.items():
                if front in self._tracked:
                    self._tracked[front].claimed(claimed)

    # For the watch.

    def take_recent(self) -> dict[Front, LastClaim]:
        found, self._recent = self._recent, {}
        return found

    def is_tracked(self, front: Front) -> bool:
        return front in self._tracked

    def tracked_parts(self, front: Front) -> Sequence[Part]:
        return self._tracked[front].parts

    def track(self, front: Front) -> None:
        with self._lock:
            self._tracked = {**self._tracked, front: FrontParts()}
            self._due = {front[0]: DueTimes(), **self._due}
            self.queues = frozenset(no for no, _ in self._tracked)

    def forget(self, front: Front) -> None:
        with self._lock:
            self._tracked = {known: r for known, r in self._tracked.items() if known != front}
            self.queues = frozenset(no for no, _ in self._tracked)
            self._due = {no: due for no, due in self._due.items() if no in self.queues}

    def looked(self, front: Front, visible: list[Place], *, is_cut: bool, is_full: bool) -> None:
        with self._lock:
            if front in self._tracked:
                self._tracked[front].looked(visible, is_cut=is_cut, is_full=is_full)

    def due_times(self, queue_no: int) -> DueTimes:
        return self._due[queue_no]


def place_of(m: Message) -> Place:
    return m.priority, m.fair_position, m.order_no


def as_lists(parts: Iterable[Part]) -> list[list[object]]:
    return [[*begin, end] for begin, end in parts]
