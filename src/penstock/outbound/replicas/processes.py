"""Workers as processes of this machine.

    started ──▶ on the roll ──▶ told to end (SIGTERM), the idle first ──▶ gone
       │             │                        │
       └─ crashed ───┘                        └─ still there after its drain time: killed
       started again after a pause that grows (crash_backoff.py)

Each is the leader of a process group.  A worker of Penstock gets SIGTERM alone, since it lets its
jobs finish, with whatever they have started.  A program of the user's may be a shell around the
real one, so the whole group gets it, and the replica lives for as long as any member of it.

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
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from penstock.domain.errors import ReplicasUnavailable
from penstock.domain.limits import MINUTE, SECOND
from penstock.domain.scaling.fleet import Processes
from penstock.domain.scaling.recommendation import Replicas
from penstock.outbound.replicas import crash_backoff
from penstock.outbound.replicas.launch import Launch
from penstock.outbound.replicas.ledger import Book, Ledger, Started
from penstock.outbound.replicas.process_table import birth, orphans, send
from penstock.outbound.replicas.registered import Registered, others
from penstock.ports.clock import Clock, Dice
from penstock.ports.fleet_registry import FleetMember, FleetRegistry

_log = logging.getLogger("penstock.fleets")

_START_MS = MINUTE  # a worker that is not on the roll by then will not get there
_GRACE_MS = 5 * SECOND  # a worker that drains ends itself in time; this is for its last words
_DIGITS = 12
_LOOK_S = 0.05


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
        roll: FleetRegistry,
        clock: Clock,
        dice: Dice,
    ) -> None:
        """`folder`: where it is kept what was started.  `clock`: that of those who say `now`."""
        self._fleet = fleet
        self._spec = spec
        self._launch = launch
        self._registered = Registered(fleet, None if spec.run else roll)  # programs are not on it
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
            members = self._registered.members()
            mine, theirs = self._living(book), others(book, members)
            starting = sum(self._is_starting(one, members, now) for one in mine)
            total = len(mine) + len(theirs)
            return Replicas(
                running=total - starting, starting=starting, requested=total + book.owed
            )

    def scale_to(self, wanted: int, *, now: int) -> None:
        with self._lock, self._ledger.open() as book:
            self._has_acted = True
            self._bury(book, now)
            members = self._registered.members()
            mine, theirs = self._living(book), others(book, members)
            more = wanted - len(mine) - len(theirs)
            book.owed = max(more, 0)
            if more > 0:
                self._start_owed(book, now)
            elif more < 0:
                self._end_some(-more, book, members, now)

    def tend(self, *, now: int) -> None:
        with self._lock, self._ledger.open() as book:
            self._has_acted = True
            self._bury(book, now)
            self._kill_overdue(book, now)
            if book.owed and now >= book.wait_until:
                self._start_owed(book, now)
            if crash_backoff.is_over(book, now=now):
                crash_backoff.forget(book)
            if book.crashes > 1:
                raise self._crash_loop(book, now)

    def close(self) -> None:
        """Has those drained that are ours, unless they are to be kept; does not wait for that.

        Ours are also those of an autoscaler that is dead: nobody else would.  The thread that
        looks after their end keeps this process from ending before them.
        """
        if not self._has_acted:
            return
        now = self._clock.now()
        with self._lock, self._ledger.open() as book:
            crash_backoff.forget(book)  # the next one may run another command
            if self._spec.keep:
                return
            book.owed = 0
            for one in self._living(book):
                if one.by == self._me or birth(one.by[0]) != one.by[1]:
                    self._end(one, book, now)
        name = f"penstock-end-of-{self._fleet}"
        threading.Thread(target=self._see_them_off, args=(now,), name=name).start()

    def _see_them_off(self, since: int) -> None:
        until = since + self._kill_after_ms
        while self._ends_go_on() and self._clock.now() < until:
            threading.Event().wait(_LOOK_S)
        now = self._clock.now()
        with self._lock, self._ledger.open() as book:
            self._bury(book, now)
            self._kill_overdue(book, now)

    # ---- who is there

    def _living(self, book: Book) -> list[Started]:
        """Those that stay."""
        return [one for one in book.started if one.ending_since is None and self._is_alive(one)]

    def _is_alive(self, one: Started) -> bool:
        return birth(one.pid) == one.birth or bool(self._orphans(one))

    def _orphans(self, one: Started) -> list[int]:
        return orphans(one.pid, self._launch.mark(one.replica)) if self._spec.run else []

    def _is_starting(self, one: Started, members: list[FleetMember], now: int) -> bool:
        if now - one.started_at >= self._start_ms:
            return False
        return not self._registered.is_used or one.replica not in {
            member.replica for member in members
        }

    def _ends_go_on(self) -> bool:
        with self._lock, self._ledger.open() as book:
            self._reap_children(book)
            return any(self._is_alive(one) for one in book.started if one.ending_since)

    # ---- more of them

    def _start_owed(self, book: Book, now: int) -> None:
        if now < book.wait_until:
            raise self._crash_loop(book, now)
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

    def _end_some(self, count: int, book: Book, members: list[FleetMember], now: int) -> None:
        held = self._registered.holding([member.id for member in members])
        busy: Counter[str | None] = Counter()
        for member in members:
            busy[member.replica] += held.get(member.id, 0)
        mine = [
            _Candidate(busy[one.replica], 0, -one.started_at, partial(self._end, one, book, now))
            for one in self._living(book)
        ]
        theirs = [
            _Candidate(
                sum(held.get(each, 0) for each in other.ids),
                1,
                -other.since,
                partial(self._registered.drain, other),
            )
            for other in others(book, members)
        ]
        for candidate in sorted([*mine, *theirs], key=_Candidate.order)[:count]:
            candidate.end()

    def _end(self, one: Started, book: Book, now: int) -> None:
        _log.info("fleet %s: process %d is told to end", self._fleet, one.pid)
        book.started.remove(one)
        book.started.append(msgspec.structs.replace(one, ending_since=now))
        self._signal(one, signal.SIGTERM, to_group=bool(self._spec.run))

    def _kill_overdue(self, book: Book, now: int) -> None:
        for one in book.started:
            since = one.ending_since
            if since is not None and now - since >= self._kill_after_ms:
                _log.error("fleet %s: process %d did not end in time", self._fleet, one.pid)
                self._signal(one, signal.SIGKILL, to_group=True)

    def _signal(self, one: Started, number: signal.Signals, *, to_group: bool) -> None:
        if not send(one.pid, one.birth, number, to_group=to_group) and self._orphans(one):
            with suppress(ProcessLookupError):
                os.killpg(one.pid, number)

    # ---- those that have ended

    def _bury(self, book: Book, now: int) -> None:
        codes = self._reap_children(book)
        crashed: list[Started] = []
        for one in list(book.started):
            if self._is_alive(one) and one.replica not in codes:
                continue
            book.started.remove(one)
            book.gone.append(one.replica)
            if one.ending_since is None and self._has_crashed(one, codes.get(one.replica)):
                crashed.append(one)
        if crashed:
            last_exit = crash_backoff.exit_text(codes[crashed[-1].replica])
            crash_backoff.add_crashes(book, crashed, last_exit=last_exit, now=now)

    def _reap_children(self, book: Book) -> dict[str, int]:
        """Exit codes of our own children that have ended with their groups, by replica."""
        held = {one.replica for one in book.started if self._orphans(one)}
        ended = {
            name: child
            for name, child in self._children.items()
            if child.poll() is not None and name not in held
        }
        for name in ended:
            del self._children[name]
        return {name: child.returncode for name, child in ended.items()}

    def _has_crashed(self, one: Started, code: int | None) -> bool:
        if code is None:  # it was started by another autoscaler, which might have known more
            _log.warning("fleet %s: process %d has ended", self._fleet, one.pid)
        elif code == 0:
            _log.info("fleet %s: process %d has ended by itself", self._fleet, one.pid)
        else:
            text = crash_backoff.exit_text(code)
            _log.error("fleet %s: process %d crashed: %s", self._fleet, one.pid, text)
        return bool(code)

    def _crash_loop(self, book: Book, now: int) -> ReplicasUnavailable:
        return ReplicasUnavailable(f"fleet {self._fleet}: {crash_backoff.describe(book, now=now)}")
