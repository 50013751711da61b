"""The supervisor: keeps worker processes running, and gives back the jobs of those that crash.

It runs no application code, so no job can crash it.  It shares with each process a table of that
process's jobs; after a crash, the successor reports them before it claims anything.
"""

from __future__ import annotations

import logging
import selectors
import socket
from collections.abc import Callable
from contextlib import suppress

import msgspec

from penstock.domain.duration import duration_text
from penstock.ports.clock import Clock
from penstock.worker.processes.child import WORK, ChildProcess, command
from penstock.worker.processes.file_watch import FileWatch
from penstock.worker.processes.frames import ProcessAssignment
from penstock.worker.processes.job_table import EntryState
from penstock.worker.processes.process_exit import RETIRED, UNUSABLE, ProcessExit

_log = logging.getLogger("penstock.worker")

_POLL_MS = 250
_GRACE_MS = 2_000  # how long past its time limit a job in the process itself may still run
_CLOSING_MS = 3_000  # how long a process may take to report everything at shutdown
_RELOAD_MS = 5_000  # how long running jobs may take when the files have changed
_STEADY_MS = 30_000  # a process that ran this long did not fail at startup
_PAUSES_MS = (0, 200, 15_000)  # delays before the first restart, the second, and the longest


class Supervisor:
    def __init__(
        self,
        assignment: ProcessAssignment,
        clock: Clock,
        *,
        processes: int = 1,
        on_ready: Callable[[], None] = lambda: None,
        watch: FileWatch | None = None,
    ) -> None:
        """`clock`: the machine's steady clock; `watch`: restart the processes when files change."""
        self._clock = clock
        self._assignment = assignment
        self._on_ready = on_ready
        self._watch_files = watch
        self._drain_ms: int | None = None
        self._drain_until: int | None = None
        self._was_ready = False
        self._out_since: int | None = None  # when the store stopped answering
        self._code = 0
        self._wakeup_reader, self._wakeup_writer = socket.socketpair()
        self._wakeup_writer.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._wakeup_reader, selectors.EVENT_READ)
        self._children = [
            ChildProcess(
                command(WORK),
                msgspec.structs.replace(assignment, has_duties=assignment.has_duties and not i),
            )
            for i in range(processes)
        ]

    @property
    def pids(self) -> list[int]:
        """The ids of the running processes."""
        return [child.pid for child in self._children if child.pid is not None]

    @property
    def queues(self) -> tuple[str, ...]:
        """The queues that its processes claim from; known once it is ready."""
        return self._children[0].queues

    @property
    def is_draining(self) -> bool:
        return self._drain_ms is not None

    def drain(self, within_ms: int | None = None) -> None:
        """Shut down.  From any thread or signal handler; the shortest time given counts."""
        within_ms = self._assignment.work.drain_ms if within_ms is None else within_ms
        if self._drain_ms is None or within_ms < self._drain_ms:
            self._drain_ms = within_ms
            self._ring()

    def run(self) -> int:
        """Run until all processes have ended; returns the exit code."""
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
        self._continue_draining(now)
        self._reload_changed(now)
        for child in self._children:
            exit = child.exit()
            if exit is not None:
                self._reap_child(child, exit, now)
            elif child.pid is None and child.start_at is not None and child.start_at <= now:
                child.start(now)
                self._selector.register(child.socket, selectors.EVENT_READ, child)
            self._watch(child, now)
        if self._assignment.work.is_burst:
            self._end_burst()
        starts = [c.start_at for c in self._children if c.pid is None and c.start_at is not None]
        return min([now + _POLL_MS, *starts])

    @property
    def _is_over(self) -> bool:
        is_waiting_for_change = self._watch_files is not None and not self.is_draining
        return not is_waiting_for_change and all(child.is_over for child in self._children)

    def _reload_changed(self, now: int) -> None:
        """Restart the processes after files have changed; one that could not start tries again."""
        if self._watch_files is None or self.is_draining:
            return
        changed = self._watch_files.settled()
        if changed:
            more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
            _log.info("reloading: %s%s changed", changed[0], more)
            for child in self._children:
                child.restart(now, within_ms=min(self._assignment.work.drain_ms, _RELOAD_MS))

    def _wait(self, ms: int) -> None:
        for key, _ in self._selector.select(max(ms, 0) / 1000):
            child: ChildProcess | None = key.data
            if child is None:
                self._wakeup_reader.recv(4096)
                continue
            was_working = child.is_working
            if not child.receive():  # it has exited, or is about to
                self._selector.unregister(key.fileobj)
                continue
            self._report_outage()
            if child.is_working and not was_working and self._was_ready and self._watch_files:
                _log.info("worker process %s runs the changed files", child.pid)
            if child.is_working and not self._was_ready:
                self._was_ready = all(c.is_working or c.pid is None for c in self._children)
                if self._was_ready:
                    for text in child.warnings:
                        _log.warning("%s", text)
                    self._on_ready()

    def _report_outage(self) -> None:
        """Report an outage once for all processes."""
        errors = [child.outage for child in self._children if child.outage is not None]
        if errors and self._out_since is None:
            self._out_since = self._clock.now()
            _log.warning("waiting for the store: %s", errors[0])
        elif not errors and self._out_since is not None:
            lasted = duration_text(self._clock.now() - self._out_since)
            self._out_since = None
            _log.info("connected to the store after %s", lasted)

    def _ring(self) -> None:
        with suppress(OSError):  # full: it has been woken already; closed: it has ended
            self._wakeup_writer.send(b"!")

    def _continue_draining(self, now: int) -> None:
        if self._drain_ms is None:
            return
        until = now + self._drain_ms
        if self._drain_until is None or until < self._drain_until:
            self._drain_until = until
            patience = f"running jobs have {duration_text(self._drain_ms)} to finish"
            _log.info("shutting down: %s", patience if self._drain_ms else "at once")
            for child in self._children:
                child.drain(self._drain_ms)
        if now >= self._drain_until + _CLOSING_MS:
            for child in self._children:
                child.kill(at_shutdown=True)

    def _end_burst(self) -> None:
        """End all processes together: a job of one may enqueue jobs for the others."""
        children = [child for child in self._children if not child.is_over]
        if all(child.is_dry for child in children):
            for child in children:
                child.finish()

    def _watch(self, child: ChildProcess, now: int) -> None:
        """Kill a process whose overdue job blocks the interpreter and so cannot be stopped."""
        if child.pid is None or child.is_killed:
            return
        overdue = child.table.overdue(now + child.table.ahead_ms - _GRACE_MS)
        if overdue:
            jobs = ", ".join(f"{entry.kind} {entry.id}" for entry in overdue)
            _log.error("killed worker process %d: it did not stop %s in time", child.pid, jobs)
            child.kill(overdue=[entry.receipt for entry in overdue])

    def _reap_child(self, child: ChildProcess, exit: ProcessExit, now: int) -> None:
        ran = [e for e in child.table.entries() if e.state is EntryState.RUNNING]
        ran_ms = now - child.started_at
        was_working, was_killed = child.is_working, child.is_killed
        pid = child.pid
        with suppress(KeyError, ValueError):
            self._selector.unregister(child.socket)
        child.reap(exit, now + child.table.ahead_ms)
        if self._drain_ms is None and child.take_restart(now):
            return
        if exit.code == 0 and not ran:
            return  # it was asked to exit, by us or through the registry
        if self._drain_ms is not None:
            child.start_successor(now)
            return
        if exit.code == RETIRED and not ran:
            child.start_at = now
            return
        if exit.code == UNUSABLE and self._watch_files is not None:
            _log.info("waiting for a change of the files")
            return
        if exit.code == UNUSABLE and not self._was_ready:
            self._code = UNUSABLE
            self.drain(0)
            return
        if not was_killed:  # otherwise the reason has been logged
            _log.error("worker process %s exited: %s; jobs running: %d", pid, exit.text(), len(ran))
        was_steady = was_working and ran_ms >= _STEADY_MS
        child.crashes = 1 if was_steady else child.crashes + 1
        child.start_at = now + _pause_ms(child.crashes)

    def _close(self) -> None:
        for child in self._children:
            child.close()
        self._selector.close()
        self._wakeup_reader.close()
        self._wakeup_writer.close()


def _pause_ms(crashes: int) -> int:
    first, second, most = _PAUSES_MS
    return first if crashes <= 1 else min(second << min(crashes - 2, 10), most)
