"""Finds queues whose claims read many dead rows, and what those claims can skip.

An old transaction anywhere in the database keeps vacuum from removing dead rows.  Claims read the
index of ready messages from its beginning, so after an hour each of them would read a million dead
entries.  A thread counts once per second what claims have to read.  Where that is much, it looks at
the queue several times per second, and lets the store's sessions know where nothing but dead rows
is (store/dead_rows).

A look reads what claims read.  A full look reads everything, and finds messages that other nodes
have put back, and those of transactions that took long to commit.  It is made every two seconds,
or less often if it reads so much that it would take more than about a twentieth of the time, but at
least every thirty seconds.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from penstock.domain.errors import PenstockError
from penstock.ports.store import Session
from penstock.ports.ticket import Ticket
from penstock.store.database import Database, Row
from penstock.store.dead_rows.dead_rows import DeadRows, Front, LastClaim, as_lists
from penstock.store.dead_rows.front_parts import EVERYTHING, Part
from penstock.store.verbs.queue_heads import ask_parts
from penstock.store.verbs.transaction_state import json_list
from penstock.supervision.health import NodeHealth
from penstock.supervision.threads import SupervisedThread

EVERY_S = 0.25
_FIND_EVERY = 4  # looks; those in between are at queues that are known
MANY_ENTRIES = 1_000  # dead ones, of one queue
_MAX_FRONTS = 200  # looked at per second
_VISIBLE = 100  # places per look
_FULL_EVERY = 8  # looks
_FULL_AT_LATEST = 120  # looks: what another node put back waits no longer
_ENTRIES_PER_LOOK = 12_500  # of a full look: one core reads about a million per second
_IDLE = 240  # looks after which a full look is made although there are no claims
_CLOSING_S = 5.0

_log = logging.getLogger("penstock.store")


class ReadableStore(Protocol):
    """What it needs of a store."""

    def read(self, what: Callable[[Session], Any]) -> Ticket[Any]: ...


class DeadRowWatch:
    """The thread; it uses the store's readers."""

    def __init__(self, store: ReadableStore, dead_rows: DeadRows, *, health: NodeHealth) -> None:
        self._store = store
        self._looks = DeadRowLooks(dead_rows)
        self._is_closing = threading.Event()
        dead_rows.is_watched = True
        self._thread = SupervisedThread("penstock-dead-rows", self._run, health=health)
        self._thread.start()

    def close(self) -> None:
        self._is_closing.set()
        self._thread.join(_CLOSING_S)

    def _run(self) -> None:
        while not self._is_closing.wait(EVERY_S):
            try:
                if self._looks.begin():
                    self._store.read(lambda session: self._looks.look(session.db)).result()  # type: ignore[attr-defined]
            except PenstockError as error:  # readers log the outage itself
                _log.debug("cannot look for dead rows: %s", error)


class DeadRowLooks:
    def __init__(self, dead_rows: DeadRows, *, many: int = MANY_ENTRIES) -> None:
        self._dead_rows = dead_rows
        self._many = many
        self._full_at: dict[Front, int] = {}  # the next full look at each of them
        self._recent: dict[Front, LastClaim] = {}  # the last claims that were not looked at
        self._last: dict[Front, LastClaim] = {}
        self._looks = 0

    def begin(self) -> bool:
        """Once per interval; returns whether there is something to look at."""
        self._looks += 1
        self._recent |= self._dead_rows.take_recent()
        if self._looks % _FIND_EVERY:
            return any(map(self._dead_rows.is_tracked, self._recent))
        return bool(self._recent) or bool(self._idle_fronts())

    def look(self, db: Database) -> None:
        """Look once at the queues from which messages were claimed since the last time."""
        db.raise_time_limits()
        new = [front for front in self._recent if not self._dead_rows.is_tracked(front)]
        if self._looks % _FIND_EVERY == 0 and new:
            self._find(db, new[:_MAX_FRONTS])
        idle = self._idle_fronts()
        for front, last in self._recent.items():
            if self._dead_rows.is_tracked(front):
                self._last[front] = last
                self._advance(db, front, last)
        for front in idle:
            self._advance(db, front, self._last[front])
        if self._looks % _FIND_EVERY == 0:
            self._recent = {}
        else:
            self._recent = {front: self._recent[front] for front in new}

    def _idle_fronts(self) -> list[Front]:
        """Those from which nothing was claimed lately and that may have no dead rows any more."""
        late = self._looks - _IDLE
        return [f for f, at in self._full_at.items() if at < late and f not in self._recent]

    def _find(self, db: Database, fronts: Sequence[Front]) -> None:
        before = _entries_read(db)
        _read(db, fronts)
        if _entries_read(db) - before < self._many:
            return
        for front in fronts:
            before = _entries_read(db)
            _read(db, [front])
            if _entries_read(db) - before >= self._many:
                self._dead_rows.track(front)

    def _advance(self, db: Database, front: Front, last: LastClaim) -> None:
        is_full = self._looks >= self._full_at.get(front, 0)
        parts = EVERYTHING if is_full else self._dead_rows.tracked_parts(front)
        before = _entries_read(db)
        rows = _visible(db, front, parts)
        self._look_at_due_times(db, front[0], last, is_full=is_full)
        if is_full:
            read = _entries_read(db) - before
            self._full_at[front] = self._looks + looks_until_full(read)
            if read < self._many // 2 + len(rows):
                self._dead_rows.forget(front)
                self._full_at.pop(front)
                self._last.pop(front)
                return
        places = [(priority, turn, order_no) for priority, turn, order_no, _ in rows]
        self._dead_rows.looked(front, places, is_cut=len(rows) == _VISIBLE, is_full=is_full)

    def _look_at_due_times(
        self, db: Database, queue_no: int, last: LastClaim, *, is_full: bool
    ) -> None:
        times = self._dead_rows.due_times(queue_no)
        until = times.begin_look(last)
        due_from, next_from = (0, 0) if is_full else (times.due_from, times.next_from)
        params = {"queue_no": queue_no, "due_from": due_from}
        first = db.rows("dead_rows.first_due", params | {"until": until})
        params["due_from"] = max(due_from, next_from)
        following = db.rows("messages.next_due", params)
        found, next_one = (rows[0][0] if rows else None for rows in (first, following))
        times.looked(found, next_one, last)


def looks_until_full(entries_read: int) -> int:
    """Until the next full look, after one that has read so many entries."""
    return min(max(_FULL_EVERY, entries_read // _ENTRIES_PER_LOOK), _FULL_AT_LATEST)


def _visible(
    db: Database, front: Front, parts: Iterable[Part], *, limit: int = _VISIBLE
) -> list[Row]:
    queue_no, kind = front
    wanted = as_lists(parts)
    if kind is not None:
        wanted = [[*part, kind] for part in wanted]
    params = {"queue_no": queue_no, "limit": limit}
    return ask_parts(db, "dead_rows.visible", params, wanted).rows()


def _read(db: Database, fronts: Iterable[Front]) -> None:
    """Read what claims of these fronts read."""
    fronts = list(fronts)
    db.rows("dead_rows.fronts", {"queue_nos": json_list(sorted({no for no, _ in fronts}))})
    for front in fronts:
        if front[1] is not None:
            _visible(db, front, EVERYTHING, limit=1)


def _entries_read(db: Database) -> int:
    [(number,)] = db.rows("dead_rows.entries_read")
    return int(number or 0)
