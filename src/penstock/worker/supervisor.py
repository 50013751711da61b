"""The supervisor: keeps worker processes running, and gives back what those that die have held.

It runs no code of the application, so nothing that a job does can hurt it.  What a dead child held
stands in a table that both share; its successor tells the store before it claims anything.
"""

from __future__ import annotations

import logging
import selectors
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress

import msgspec

from penstock.domain.duration import duration_text
from penstock.ports.clock import Clock
from penstock.worker.child import Child
from penstock.worker.frames import Errand
from penstock.worker.job_table import Noted
from penstock.worker.process_exit import Death

_log = logging.getLogger("penstock.worker")

UNUSABLE = 78  # a child's exit code: the application cannot be loaded; sysexits calls it CONFIG
RETIRED = 79  # a child's exit code: it has reached a limit of its order and is to be replaced
_LOOK_MS = 250
_GRACE_MS = 2_000  # so long after its time limit a job in the process itself may still run
_CLOSING_MS = 3_000  # so long a child may take to tell of everything at the end
_STEADY_MS = 30_000  # who lived so long has not died of its start
_PAUSES_MS = (0, 200, 15_000)  # before the first restart, the second, and at most


class Supervisor:
    def __init__(
        self,
        command: Sequence[str],
        errand: Errand,
        clock: Clock,
        *,
        processes: int = 1,
        on_ready: Callable[[], None] = lambda: None,
    ) -> None:
        """`clock`: a steady one, that of the whole machine."""
        self._clock = clock
        self._errand = errand
        self._on_ready = on_ready
        self._drain_ms: int | None = None
        self._drain_until: int | None = None
        self._was_ready = False
        self._out_since: int | None = None  # when the store stopped to answer
        self._code = 0
        self._bell, self._rope = socket.socketpair()
        self._rope.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._bell, selectors.EVENT_READ)
        self._children = [
            Child(command, msgspec.structs.replace(errand, has_duties=errand.has_duties and not i))
            for i in range(processes)
        ]

    @property
    def pids(self) -> list[int]:
        """Of those that live."""
        return [child.pid for child in self._children if child.pid is not None]

    @property
    def queues(self) -> tuple[str, ...]:
        """Those that its processes work on; known when it is ready."""
        return self._children[0].queues

    @property
    def is_draining(self) -> bool:
        return self._drain_ms is not None

    def drain(self, within_ms: int | None = None) -> None:
        """End.  From any thread, or a signal's handler; the shortest time said counts."""
        within_ms = self._errand.order.drain_ms if within_ms is None else within_ms
        if self._drain_ms is None or within_ms < self._drain_ms:
            self._drain_ms = within_ms
            self._ring()

    def run(self) -> int:
        """Until all children have ended, as was asked; returns the exit code."""
        try:
            while True:
                now = self._clock.now()
                next_at = self.tick(now)
                if self._is_over:
                    break
                self._wait(next_at - now)
        finally:
            self._close()
        return self._code

    def tick(self, now: int) -> int:
        self._go_on_draining(now)
        for child in self._children:
            death = child.look()
            if death is not None:
                self._bury(child, death, now)
            elif child.pid is None and child.start_at is not None and child.start_at <= now:
                child.start(now)
                self._selector.register(child.socket, selectors.EVENT_READ, child)
            self._watch(child, now)
        if self._errand.order.is_burst:
            self._end_burst()
        starts = [c.start_at for c in self._children if c.pid is None and c.start_at is not None]
        return min([now + _LOOK_MS, *starts])

    @property
    def _is_over(self) -> bool:
        return all(child.is_over for child in self._children)

    def _wait(self, ms: int) -> None:
        for key, _ in self._selector.select(max(ms, 0) / 1000):
            child: Child | None = key.data
            if child is None:
                self._bell.recv(4096)
                continue
            if not child.hear():  # it is dead, or about to be: `look` will tell
                self._selector.unregister(key.fileobj)
                continue
            self._report_outage()
            if child.is_working and not self._was_ready:
                self._was_ready = all(c.is_working or c.pid is None for c in self._children)
                if self._was_ready:
                    for text in child.warnings:
                        _log.warning("%s", text)
                    self._on_ready()

    def _report_outage(self) -> None:
        """Once for all processes."""
        errors = [child.outage for child in self._children if child.outage is not None]
        if errors and self._out_since is None:
            self._out_since = self._clock.now()
            _log.warning("waiting for the store: %s", errors[0])
        elif not errors and self._out_since is not None:
            lasted = duration_text(self._clock.now() - self._out_since)
            self._out_since = None
            _log.info("connected to the store after %s", lasted)

    def _ring(self) -> None:
        with suppress(OSError):  # full: it rings already; closed: nobody waits
            self._rope.send(b"!")

    def _go_on_draining(self, now: int) -> None:
        if self._drain_ms is None:
            return
        until = now + self._drain_ms
        if self._drain_until is None or until < self._drain_until:
            self._drain_until = until
            patience = f"what runs may take {duration_text(self._drain_ms)} more"
            _log.info("ending: %s", patience if self._drain_ms else "at once")
            for child in self._children:
                child.drain(self._drain_ms)
        if now >= self._drain_until + _CLOSING_MS:
            for child in self._children:
                child.kill(is_our_doing=True)

    def _end_burst(self) -> None:
        """A job of one process may enqueue work for the others: they end together."""
        children = [child for child in self._children if not child.is_over]
        if all(child.is_dry for child in children):
            for child in children:
                child.finish()

    def _watch(self, child: Child, now: int) -> None:
        """A job that holds the interpreter keeps its own process from stopping it."""
        if child.pid is None or child.is_doomed:
            return
        overdue = child.table.overdue(now + child.table.ahead_ms - _GRACE_MS)
        if overdue:
            jobs = ", ".join(f"{entry.kind} {entry.id}" for entry in overdue)
            _log.error("worker process %d does not stop %s in time: killed", child.pid, jobs)
            child.kill(overdue=[entry.receipt for entry in overdue])

    def _bury(self, child: Child, death: Death, now: int) -> None:
        ran = [e for e in child.table.entries() if e.state is Noted.RUNNING]
        lived_ms = now - child.started_at
        was_working, was_doomed = child.is_working, child.is_doomed
        pid = child.pid
        with suppress(KeyError, ValueError):
            self._selector.unregister(child.socket)
        child.bury(death, now + child.table.ahead_ms)
        if death.code == 0 and not ran:
            return  # it was asked to end, by us or through the registry
        if self._drain_ms is not None:
            child.start_heir(now)
            return
        if death.code == RETIRED and not ran:
            child.start_at = now
            return
        if death.code == UNUSABLE and not self._was_ready:
            self._code = UNUSABLE
            self.drain(0)
            return
        if not was_doomed:  # why we have killed it has been told
            _log.error("worker process %s died: %s; jobs running: %d", pid, death.text(), len(ran))
        is_new = was_working and lived_ms >= _STEADY_MS
        child.deaths = 1 if is_new else child.deaths + 1
        child.start_at = now + _pause_ms(child.deaths)

    def _close(self) -> None:
        for child in self._children:
            child.close()
        self._selector.close()
        self._bell.close()
        self._rope.close()


def _pause_ms(deaths: int) -> int:
    first, second, most = _PAUSES_MS
    return first if deaths <= 1 else min(second << min(deaths - 2, 10), most)
