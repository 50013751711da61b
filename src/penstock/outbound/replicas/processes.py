"""Workers as processes of this machine.

    started ──▶ registered ──▶ asked to end (SIGTERM), the idle first ──▶ gone
       │             │                        │
       └─ crashed ───┘                        └─ still there after its drain time: killed
       restarted after a growing pause (crash_backoff.py)

Each process is the leader of a process group.  Of a Penstock worker only the leader gets SIGTERM,
since it lets its jobs and their child processes finish.  A user's program may be a shell around the
real one, so the whole group gets the signal, and the replica runs as long as any process of the
group does.

Started processes are recorded in a file (see ledger.py), so that after a crash of the autoscaler
its successor continues with them.  Workers of the fleet that were started elsewhere, on this
machine or another, are counted in the registry and drained through it.
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
from penstock.outbound.replicas.launch import Launch, orphans, send, start_time
from penstock.outbound.replicas.ledger import Ledger, LedgerState, StartedProcess
from penstock.outbound.replicas.registered import RegisteredReplicas, others
from penstock.ports.clock import Clock, Dice
from penstock.ports.scaling import FleetMember, FleetRegistry

_log = logging.getLogger("penstock.fleets")

_START_MS = MINUTE  # a worker that has not registered by then counts as running
_GRACE_MS = 5 * SECOND  # beyond its drain time, for a worker to report and exit
_DIGITS = 12
_CHECK_S = 0.05


class _Candidate(NamedTuple):
    """Sorts processes to end: idle ones first, then our own (they react at once), then new ones."""

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
        registry: FleetRegistry,
        clock: Clock,
        dice: Dice,
    ) -> None:
        """`folder`: for the ledger.  `clock`: the one that callers take `now` from."""
        self._fleet = fleet
        self._spec = spec
        self._launch = launch
        # A user's programs do not register.
        self._registered = RegisteredReplicas(fleet, None if spec.run else registry)
        self._clock = clock
        self._dice = dice
        self._ledger = Ledger(folder, fleet)
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._me = (os.getpid(), start_time(os.getpid()) or "")
        self._has_acted = False
        self._lock = threading.Lock()
        start_ms = 0 if spec.run else _START_MS
        self._start_ms = start_ms if spec.start_ms is None else spec.start_ms
        self._kill_after_ms = spec.drain_ms + (0 if spec.run else _GRACE_MS)

    def count(self, *, now: int) -> Replicas:
        with self._lock, self._ledger.open() as state:
            members = self._registered.members()
            mine, theirs = self._living(state), others(state, members)
            starting = sum(self._is_starting(one, members, now) for one in mine)
            total = len(mine) + len(theirs)
            return Replicas(
                running=total - starting, starting=starting, requested=total + state.to_start
            )

    def scale_to(self, wanted: int, *, now: int) -> None:
        with self._lock, self._ledger.open() as state:
            self._has_acted = True
            self._remove_ended(state, now)
            members = self._registered.members()
            mine, theirs = self._living(state), others(state, members)
            more = wanted - len(mine) - len(theirs)
            state.to_start = max(more, 0)
            if more > 0:
                self._start_missing(state, now)
            elif more < 0:
                self._end_some(-more, state, members, now)

    def maintain(self, *, now: int) -> None:
        with self._lock, self._ledger.open() as state:
            self._has_acted = True
            self._remove_ended(state, now)
            self._kill_overdue(state, now)
            if state.to_start and now >= state.wait_until:
                self._start_missing(state, now)
            if crash_backoff.is_over(state, now=now):
                crash_backoff.forget(state)
            if state.crashes > 1:
                raise self._crash_loop(state, now)

    def close(self) -> None:
        """Drain our processes unless they are to be kept; does not wait for their end.

        Processes of an autoscaler that is gone count as ours.  The thread that waits for their end
        keeps this process alive until then.
        """
        if not self._has_acted:
            return
        now = self._clock.now()
        with self._lock, self._ledger.open() as state:
            crash_backoff.forget(state)  # the next autoscaler may run another command
            if self._spec.keep:
                return
            state.to_start = 0
            for one in self._living(state):
                if one.by == self._me or start_time(one.by[0]) != one.by[1]:
                    self._end(one, state, now)
        name = f"penstock-end-of-{self._fleet}"
        threading.Thread(target=self._wait_for_ends, args=(now,), name=name).start()

    def _wait_for_ends(self, since: int) -> None:
        until = since + self._kill_after_ms
        try:
            while self._is_any_ending() and self._clock.now() < until:
                threading.Event().wait(_CHECK_S)
            now = self._clock.now()
            with self._lock, self._ledger.open() as state:
                self._remove_ended(state, now)
                self._kill_overdue(state, now)
        except ReplicasUnavailable as error:  # the data folder may have been removed
            _log.warning(
                "fleet %s: cannot record which processes have ended: %s", self._fleet, error
            )

    # ---- counting

    def _living(self, state: LedgerState) -> list[StartedProcess]:
        """Live processes that were not asked to end."""
        return [one for one in state.started if one.ending_since is None and self._is_alive(one)]

    def _is_alive(self, one: StartedProcess) -> bool:
        return start_time(one.pid) == one.start_time or bool(self._orphans(one))

    def _orphans(self, one: StartedProcess) -> list[int]:
        return orphans(one.pid, self._launch.mark(one.replica)) if self._spec.run else []

    def _is_starting(self, one: StartedProcess, members: list[FleetMember], now: int) -> bool:
        if now - one.started_at >= self._start_ms:
            return False
        return not self._registered.is_used or one.replica not in {
            member.replica for member in members
        }

    def _is_any_ending(self) -> bool:
        with self._lock, self._ledger.open() as state:
            self._reap_children(state)
            return any(self._is_alive(one) for one in state.started if one.ending_since)

    # ---- starting

    def _start_missing(self, state: LedgerState, now: int) -> None:
        if now < state.wait_until:
            raise self._crash_loop(state, now)
        while state.to_start:
            replica = self._dice.digits(_DIGITS)
            try:
                child = self._launch.start(replica)
            except OSError as error:
                state.to_start = 0
                raise ReplicasUnavailable(
                    f"fleet {self._fleet}: a process could not be started: {error}"
                ) from error
            self._children[replica] = child
            state.to_start -= 1
            state.started.append(
                StartedProcess(
                    replica=replica,
                    pid=child.pid,
                    start_time=start_time(child.pid) or "",
                    started_at=now,
                    by=self._me,
                )
            )
            self._ledger.write(state)  # in case we are killed before the next one
            _log.info("fleet %s: started process %d", self._fleet, child.pid)

    # ---- ending

    def _end_some(
        self, count: int, state: LedgerState, members: list[FleetMember], now: int
    ) -> None:
        leases = self._registered.lease_counts([member.id for member in members])
        busy: Counter[str | None] = Counter()
        for member in members:
            busy[member.replica] += leases.get(member.id, 0)
        mine = [
            _Candidate(busy[one.replica], 0, -one.started_at, partial(self._end, one, state, now))
            for one in self._living(state)
        ]
        theirs = [
            _Candidate(
                sum(leases.get(each, 0) for each in other.ids),
                1,
                -other.since,
                partial(self._registered.drain, other),
            )
            for other in others(state, members)
        ]
        for candidate in sorted([*mine, *theirs], key=_Candidate.order)[:count]:
            candidate.end()

    def _end(self, one: StartedProcess, state: LedgerState, now: int) -> None:
        _log.info("fleet %s: asked process %d to exit", self._fleet, one.pid)
        state.started.remove(one)
        state.started.append(msgspec.structs.replace(one, ending_since=now))
        self._signal(one, signal.SIGTERM, to_group=bool(self._spec.run))

    def _kill_overdue(self, state: LedgerState, now: int) -> None:
        for one in state.started:
            since = one.ending_since
            if since is not None and now - since >= self._kill_after_ms:
                _log.error(
                    "fleet %s: killing process %d: it did not exit in time", self._fleet, one.pid
                )
                self._signal(one, signal.SIGKILL, to_group=True)

    def _signal(self, one: StartedProcess, number: signal.Signals, *, to_group: bool) -> None:
        if not send(one.pid, one.start_time, number, to_group=to_group) and self._orphans(one):
            with suppress(ProcessLookupError):
                os.killpg(one.pid, number)

    # ---- ended processes

    def _remove_ended(self, state: LedgerState, now: int) -> None:
        codes = self._reap_children(state)
        crashed: list[StartedProcess] = []
        for one in list(state.started):
            if self._is_alive(one) and one.replica not in codes:
                continue
            state.started.remove(one)
            state.gone.append(one.replica)
            if one.ending_since is None and self._has_crashed(one, codes.get(one.replica)):
                crashed.append(one)
        if crashed:
            last_exit = crash_backoff.exit_text(codes[crashed[-1].replica])
            crash_backoff.add_crashes(state, crashed, last_exit=last_exit, now=now)

    def _reap_children(self, state: LedgerState) -> dict[str, int]:
        """Exit codes of our own children that have ended together with their groups, by replica."""
        leases = {one.replica for one in state.started if self._orphans(one)}
        ended = {
            name: child
            for name, child in self._children.items()
            if child.poll() is not None and name not in leases
        }
        for name in ended:
            del self._children[name]
        return {name: child.returncode for name, child in ended.items()}

    def _has_crashed(self, one: StartedProcess, code: int | None) -> bool:
        if code is None:  # another autoscaler started it, so its exit code is unknown
            _log.warning("fleet %s: process %d has ended", self._fleet, one.pid)
        elif code == 0:
            _log.info("fleet %s: process %d exited by itself", self._fleet, one.pid)
        else:
            text = crash_backoff.exit_text(code)
            _log.error("fleet %s: process %d crashed: %s", self._fleet, one.pid, text)
        return bool(code)

    def _crash_loop(self, state: LedgerState, now: int) -> ReplicasUnavailable:
        return ReplicasUnavailable(f"fleet {self._fleet}: {crash_backoff.describe(state, now=now)}")
