"""Workers as processes of this machine.

    started ──▶ on the roll ──▶ told to end (SIGTERM), the idle first ──▶ gone
       │             │                        │
       └─ crashed ───┘                        └─ still there after its drain time: killed
       started again after a pause that grows

What was started is kept in a file (see ledger.py), so that after a crash of the autoscaler its
successor goes on with the same processes.  Workers of the fleet that somebody else has started, on
this machine or another, are found on the roll: they are counted, and drained through it.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from penstock.domain.errors import ReplicasUnavailable, StoreUnavailable
from penstock.domain.fleets import Processes
from penstock.domain.limits import MINUTE, SECOND
from penstock.domain.scaling import Replicas
from penstock.outbound.replicas.launch import Launch
from penstock.outbound.replicas.ledger import Book, Ledger, Started
from penstock.outbound.replicas.process_table import birth, send
from penstock.ports.clock import Clock, Dice
from penstock.ports.roll import FleetRoll, Member

T = TypeVar("T")

_log = logging.getLogger("penstock.fleets")

_START_MS = MINUTE  # a worker that is not on the roll by then will not get there
_GRACE_MS = 5 * SECOND  # a worker that drains ends itself in time; this is for its last words
_STEADY_MS = 30 * SECOND  # who lived so long has not died of its start
_PAUSES_MS = (0, SECOND, MINUTE)  # before the first restart, the second, and at most
_DIGITS = 12
_LOOK_S = 0.05


class _Other(msgspec.Struct, frozen=True):
    """A replica that is not ours to signal: the workers of it that are on the roll."""

    ids: tuple[str, ...]
    since: int


class _Candidate(NamedTuple):
    """For being ended: the idle first; of equals ours, which hear of it at once; the youngest."""

    busy: int
    is_other: int
    older: int
    end: Callable[[], None]

    def order(self) -> tuple[int, int, int]:
        return self[:3]


class ProcessReplicas:
    """Safe to share between threads."""

    def __init__(
        self,
        fleet: str,
        spec: Processes,
        launch: Launch,
        *,
        folder: Path,
        roll: FleetRoll,
        clock: Clock,
        dice: Dice,
    ) -> None:
        """`folder`: where it is kept what was started.  `clock`: that of those who say `now`."""
        self._fleet = fleet
        self._spec = spec
        self._launch = launch
        self._roll = None if spec.run else roll  # other programs are not on it
        self._clock = clock
        self._dice = dice
        self._ledger = Ledger(folder, fleet)
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._me = (os.getpid(), birth(os.getpid()) or "")
        self._has_acted = False
        self._lock = threading.Lock()
        start_ms = 0 if spec.run else _START_MS
        self._start_ms = start_ms if spec.start_ms is None else spec.start_ms
        self._kill_after_ms = spec.drain_ms + (0 if spec.run else _GRACE_MS)

    def count(self, *, now: int) -> Replicas:
        with self._lock, self._ledger.open() as book:
            members = self._members()
            mine, others = _living(book), _others(book, members)
            starting = sum(self._is_starting(one, members, now) for one in mine)
            total = len(mine) + len(others)
            return Replicas(
                running=total - starting, starting=starting, requested=total + book.owed
            )

    def scale_to(self, wanted: int, *, now: int) -> None:
        with self._lock, self._ledger.open() as book:
            self._has_acted = True
            self._bury(book, now)
            members = self._members()
            mine, others = _living(book), _others(book, members)
            more = wanted - len(mine) - len(others)
            book.owed = max(more, 0)
            if more > 0:
                self._start_owed(book, now)
            elif more < 0:
                self._end_some(-more, book, members, now)

    def tend(self, *, now: int) -> None:
        with self._lock, self._ledger.open() as book:
            self._has_acted = True
            self._bury(book, now)
            for one in book.started:
                since = one.ending_since
                if since is not None and now - since >= self._kill_after_ms:
                    _log.error("fleet %s: process %d did not end in time", self._fleet, one.pid)
                    send(one.pid, one.birth, signal.SIGKILL, to_group=True)
            if book.owed and now >= book.wait_until:
                self._start_owed(book, now)
            if not book.owed and all(now - one.started_at >= _STEADY_MS for one in book.started):
                book.crashes = 0

    def close(self) -> None:
        """Has those drained that are ours, unless they are to be kept; does not wait for that.

        Ours are also those of an autoscaler that is dead: nobody else would.  The thread that
        looks after their end keeps this process from ending before them.
        """
        if self._spec.keep or not self._has_acted:
            return
        now = self._clock.now()
        with self._lock, self._ledger.open() as book:
            book.owed = 0
            for one in _living(book):
                if one.by == self._me or birth(one.by[0]) != one.by[1]:
                    self._end(one, book, now)
        name = f"penstock-end-of-{self._fleet}"
        threading.Thread(target=self._see_them_off, args=(now,), name=name).start()

    def _see_them_off(self, since: int) -> None:
        until = since + self._kill_after_ms
        while self._ends_go_on() and self._clock.now() < until:
            threading.Event().wait(_LOOK_S)
        self.tend(now=self._clock.now())

    # ---- who is there

    def _members(self) -> list[Member]:
        """Those that stay; none of those that drain."""
        roll = self._roll
        if roll is None:
            return []
        return [one for one in _on_roll(lambda: roll.members(self._fleet)) if not one.is_draining]

    def _is_starting(self, one: Started, members: list[Member], now: int) -> bool:
        if now - one.started_at >= self._start_ms:
            return False
        return self._roll is None or one.replica not in {member.replica for member in members}

    def _ends_go_on(self) -> bool:
        with self._lock, self._ledger.open() as book:
            self._reap()
            return any(birth(one.pid) == one.birth for one in book.started if one.ending_since)

    # ---- more of them

    def _start_owed(self, book: Book, now: int) -> None:
        if now < book.wait_until:
            seconds = (book.wait_until - now + 999) // 1000
            raise ReplicasUnavailable(
                f"fleet {self._fleet}: its processes die, {book.crashes} in a row; "
                f"the next is started in {seconds} s"
            )
        while book.owed:
            replica = self._dice.digits(_DIGITS)
            try:
                child = self._launch.start(replica)
            except OSError as error:
                book.owed = 0
                raise ReplicasUnavailable(
                    f"fleet {self._fleet}: no process can be started: {error}"
                ) from error
            self._children[replica] = child
            book.owed -= 1
            book.started.append(
                Started(
                    replica=replica,
                    pid=child.pid,
                    birth=birth(child.pid) or "",
                    started_at=now,
                    by=self._me,
                )
            )
            self._ledger.keep(book)  # should we be killed before the next
            _log.info("fleet %s: process %d is started", self._fleet, child.pid)

    # ---- fewer of them

    def _end_some(self, count: int, book: Book, members: list[Member], now: int) -> None:
        held = self._holding([member.id for member in members])
        busy: Counter[str | None] = Counter()
        for member in members:
            busy[member.replica] += held.get(member.id, 0)
        mine = [
            _Candidate(busy[one.replica], 0, -one.started_at, partial(self._end, one, book, now))
            for one in _living(book)
        ]
        others = [
            _Candidate(
                sum(held.get(each, 0) for each in other.ids),
                1,
                -other.since,
                partial(self._drain, other),
            )
            for other in _others(book, members)
        ]
        for candidate in sorted([*mine, *others], key=_Candidate.order)[:count]:
            candidate.end()

    def _holding(self, worker_ids: list[str]) -> dict[str, int]:
        roll = self._roll
        if roll is None or not worker_ids:
            return {}
        return _on_roll(lambda: roll.holding(worker_ids))

    def _end(self, one: Started, book: Book, now: int) -> None:
        _log.info("fleet %s: process %d is told to end", self._fleet, one.pid)
        book.started.remove(one)
        book.started.append(msgspec.structs.replace(one, ending_since=now))
        send(one.pid, one.birth, signal.SIGTERM)

    def _drain(self, other: _Other) -> None:
        for worker_id in other.ids:
            _log.info("fleet %s: worker %s is drained", self._fleet, worker_id)
            if self._roll is not None:
                _on_roll(partial(self._roll.drain, worker_id))

    # ---- those that have ended

    def _bury(self, book: Book, now: int) -> None:
        codes = self._reap()
        for one in list(book.started):
            if birth(one.pid) == one.birth and one.replica not in codes:
                continue
            book.started.remove(one)
            book.gone.append(one.replica)
            if one.ending_since is None:
                self._mourn(one, codes.get(one.replica), book, now)

    def _reap(self) -> dict[str, int]:
        """Exit codes of our own children that have ended, by replica."""
        ended = {name: child for name, child in self._children.items() if child.poll() is not None}
        for name in ended:
            del self._children[name]
        return {name: child.returncode for name, child in ended.items()}

    def _mourn(self, one: Started, code: int | None, book: Book, now: int) -> None:
        if code is None:  # it was started by another autoscaler, which might have known more
            _log.warning("fleet %s: process %d has ended", self._fleet, one.pid)
        elif code == 0:
            _log.info("fleet %s: process %d has ended by itself", self._fleet, one.pid)
        else:
            is_steady = now - one.started_at >= _STEADY_MS
            book.crashes = 1 if is_steady else book.crashes + 1
            book.owed += 1
            book.wait_until = now + _pause_ms(book.crashes)
            _log.error("fleet %s: process %d died: %s", self._fleet, one.pid, _told(code))


def _living(book: Book) -> list[Started]:
    """Those that stay."""
    return [one for one in book.started if one.ending_since is None and birth(one.pid) == one.birth]


def _others(book: Book, members: list[Member]) -> list[_Other]:
    known = {one.replica for one in book.started} | set(book.gone)
    found: dict[str, list[Member]] = {}
    for member in members:
        if member.replica not in known:
            found.setdefault(member.replica or member.id, []).append(member)
    return [
        _Other(tuple(member.id for member in each), min(member.registered_at for member in each))
        for each in found.values()
    ]


def _on_roll(ask: Callable[[], T]) -> T:
    try:
        return ask()
    except StoreUnavailable as error:
        raise ReplicasUnavailable("the registry of workers cannot be read") from error


def _pause_ms(crashes: int) -> int:
    first, second, most = _PAUSES_MS
    return first if crashes <= 1 else min(second << min(crashes - 2, 10), most)


def _told(code: int) -> str:
    if code > 0:
        return f"exit code {code}"
    try:
        return f"signal {signal.Signals(-code).name}"
    except ValueError:
        return f"signal {-code}"
