"""A worker process, as its supervisor sees it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Collection, Sequence
from contextlib import suppress

import msgspec

from penstock.domain.message.lease import Verb
from penstock.worker.claimed_job import JobAct
from penstock.worker.processes.frames import (
    Drain,
    Dry,
    Finish,
    ProcessAssignment,
    WaitingForStore,
    Wire,
    Working,
)
from penstock.worker.processes.job_table import EntryState, JobTable, TableEntry
from penstock.worker.processes.process_exit import ProcessExit, wait_for

WORK = "work"
SANDBOX = "sandbox"


def acts_for(
    entries: Sequence[TableEntry],
    exit: ProcessExit,
    *,
    now: int,
    worker_id: str,
    overdue: Collection[str] = (),
    at_shutdown: bool = False,
) -> list[JobAct]:
    """What to do with the jobs of a crashed worker process.

    Any job that ran in the process itself may be the cause.  All of them are reported as crashed
    and run in a sandbox from then on, which shows which one is to blame.  The others are given
    back.

    `overdue`: receipts of the jobs it was killed for; `at_shutdown`: no job is to blame.
    """
    suspects = [entry for entry in entries if entry.state is EntryState.RUNNING]
    acts = []
    for entry in entries:
        if entry.receipt in overdue:
            text = "did not stop at its time limit, so its worker process was killed"
            acts.append(JobAct(receipt=entry.receipt, verb=Verb.TIME_OUT, text=text))
        elif entry.state is not EntryState.RUNNING or overdue or at_shutdown:
            acts.append(JobAct(receipt=entry.receipt, verb=Verb.RELEASE, delay_ms=0))
        else:
            text = _text(entry, exit, now, worker_id, beside=len(suspects) - 1)
            acts.append(JobAct(receipt=entry.receipt, verb=Verb.CRASH, text=text))
    return acts


def _text(entry: TableEntry, exit: ProcessExit, now: int, worker_id: str, *, beside: int) -> str:
    seconds = max(now - entry.started_at, 0) / 1000
    text = (
        f"its worker process exited: {exit.text()}; worker {worker_id or '?'}, "
        f"handler {entry.kind}, {seconds:.1f} s running"
    )
    return f"{text}, beside {beside} other jobs" if beside else text


def command(kind: str) -> list[str]:
    """The command line of a worker process, WORK or SANDBOX."""
    return [sys.executable, "-m", "penstock.worker.processes.process", kind]


class ChildProcess:
    """One worker process at a time: its successor inherits the job table and the leftovers."""

    def __init__(self, command: Sequence[str], assignment: ProcessAssignment) -> None:
        self._command = command
        self.table = JobTable.create(assignment.work.places)
        self._assignment = msgspec.structs.replace(assignment, table_fd=self.table.fd)
        self._process: subprocess.Popen[bytes] | None = None
        self._wire: Wire | None = None
        self._leftovers: list[JobAct] = []
        self._overdue: Collection[str] = ()
        self._at_shutdown = False
        self._is_successor = False
        self._is_restarting = False
        self.is_killed = False
        self.is_working = False
        self.queues: tuple[str, ...] = ()
        self.warnings: tuple[str, ...] = ()
        self.outage: str | None = None  # why the store does not answer
        self.is_dry = False  # in a burst: it has run out of jobs
        self._is_finishing = False
        self.start_at: int | None = 0
        self.started_at = 0
        self.crashes = 0  # consecutive failures

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def start(self, now: int) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            fds = [theirs.fileno(), self.table.fd]
            self._process = subprocess.Popen([*self._command, str(fds[0])], pass_fds=fds)
        self.socket = ours
        self._wire = Wire(ours)
        self.start_at = None
        self.started_at = now
        self.is_working = self.is_killed = self._at_shutdown = False
        self.is_dry = self._is_finishing = False
        self._overdue = ()
        self._send(
            msgspec.structs.replace(
                self._assignment,
                leftovers=tuple(self._leftovers),
                is_successor=self._is_successor,
            )
        )

    def start_successor(self, now: int) -> None:
        """Start a process that only reports the leftovers; tried once."""
        self.start_at = now if self._leftovers and not self._is_successor else None
        self._is_successor = True

    def restart(self, now: int, *, within_ms: int) -> None:
        """Drain the process, and start another one when it has exited."""
        self.crashes = 0
        if self._process is None:
            self.start_at = now
        else:
            self._is_restarting = True
            self._send(Drain(within_ms))

    def take_restart(self, now: int) -> bool:
        """Whether the exited process is to be restarted; then it is started now."""
        if self._is_restarting:
            self.start_at = now
        is_restarting, self._is_restarting = self._is_restarting, False
        return is_restarting

    def receive(self) -> bool:
        """Read what the process has sent; False if it has exited."""
        frame = None if self._wire is None else self._wire.receive()
        match frame:
            case Working():
                self.is_working = True
                self.queues, self.warnings = frame.queues, frame.warnings
                self._leftovers = []
            case WaitingForStore():
                self.outage = frame.error
            case Dry():
                self.is_dry = frame.is_dry
        return frame is not None

    def exit(self) -> ProcessExit | None:
        """None while the process runs."""
        return None if self._process is None else wait_for(self._process)

    def reap(self, exit: ProcessExit, now: int) -> None:
        """Note what to do with the jobs of the exited process."""
        self._leftovers += acts_for(
            self.table.entries(),
            exit,
            now=now,
            worker_id=self.table.worker_id,
            overdue=self._overdue,
            at_shutdown=self._at_shutdown,
        )
        self.table.clear()
        self._process = None
        self.is_dry = False
        self.outage = None
        if self._wire is not None:
            self._wire.close()
            self._wire = None

    @property
    def is_over(self) -> bool:
        """Whether it has exited without a successor."""
        return self._process is None and self.start_at is None

    def finish(self) -> None:
        """End a burst: the process exits when it has no jobs."""
        if not self._is_finishing:
            self._is_finishing = True
            self._send(Finish())

    def drain(self, within_ms: int) -> None:
        self.start_at = None
        self._send(Drain(within_ms))

    def kill(self, *, overdue: Collection[str] = (), at_shutdown: bool = False) -> None:
        if self._process is not None and not self.is_killed:
            self.is_killed = True
            self._overdue = overdue
            self._at_shutdown = at_shutdown
            os.kill(self._process.pid, signal.SIGKILL)

    def close(self) -> None:
        self.kill(at_shutdown=True)
        if self._wire is not None:
            self._wire.close()
        self.table.close()

    def _send(self, frame: ProcessAssignment | Drain | Finish) -> None:
        if self._wire is not None:
            with suppress(OSError):  # it has exited, which `exit` reports
                self._wire.send(frame)
