"""The sandboxes of a worker.

They run jobs whose time limit must hold although they do not yield, and jobs that have crashed a
worker before.

A sandbox is started on demand, loads the application once, and is reused.  The job that has waited
longest gets the next sandbox that is ready.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress

from penstock.domain.message.lease import Verb
from penstock.ports.clock import Clock
from penstock.worker.chunk import Chunk
from penstock.worker.claimed_job import ClaimedJob, JobAct
from penstock.worker.processes.frames import (
    ExtendLease,
    Interrupt,
    JobEnded,
    Logged,
    ProcessAssignment,
    RunJob,
    Stop,
)
from penstock.worker.processes.process_exit import ProcessExit, reason_to_retire
from penstock.worker.slots.sandbox import Sandbox

_log = logging.getLogger("penstock.worker")
_AGAIN_MS = 10_000  # delay after a sandbox could not be started


class Sandboxes:
    """`run` is called on the slots' threads; each of them uses at most one sandbox at a time."""

    def __init__(self, command: Sequence[str], assignment: ProcessAssignment, clock: Clock) -> None:
        self._command = command
        self._assignment = assignment
        self._clock = clock
        self._lock = threading.Lock()
        self._idle: list[Sandbox] = []
        self._waiting: deque[Future[Sandbox | None]] = deque()
        self._starting: set[Sandbox] = set()
        self._starters = 0  # starting threads; more than one per core would only delay the first
        self._is_closed = False

    def run(self, job: ClaimedJob, begin: Callable[[ClaimedJob], bool]) -> JobAct | None:
        """Run a job; None if it was stopped, and its end is reported elsewhere."""
        try:
            sandbox = self._take(job)
        except OSError as error:  # not the job's fault
            _log.error("no sandbox could be started: %s", error)
            return JobAct(receipt=job.receipt, verb=Verb.RELEASE, delay_ms=_AGAIN_MS)
        if sandbox is None:
            return None
        if not begin(job):
            self._offer(sandbox)
            return None
        job.stop_handler = lambda: _send(sandbox, Interrupt(job.receipt))
        job.force_stop = sandbox.kill
        if job.stop_reason is not None:  # it was stopped meanwhile
            sandbox.kill()
        act = self._await_end(job, sandbox)
        job.stop_handler = job.force_stop = job.request_stop = None
        if act is not None:
            self._keep(sandbox)
            return act
        return self._report_crash(job, sandbox.reap())

    def warm_up(self) -> None:
        """Start a sandbox for the first job."""
        with self._lock:
            self._starters += 1
        self._start_thread()

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
            starting = list(self._starting)
        for sandbox in starting:
            sandbox.kill()
        for sandbox in idle:
            sandbox.dismiss()  # dismiss all at the same time
        for sandbox in idle:
            sandbox.reap()

    # ---- taking one

    def _take(self, job: ClaimedJob) -> Sandbox | None:
        """Take a ready sandbox, or None if the job was stopped before it began.  Raises OSError."""
        waiting: Future[Sandbox | None] = Future()
        with self._lock:
            while self._idle:
                sandbox = self._idle.pop()
                if sandbox.is_alive:
                    return sandbox
                sandbox.reap()
            self._waiting.append(waiting)
            is_starter_needed = self._starters < min(len(self._waiting), os.cpu_count() or 1)
            self._starters += is_starter_needed
        job.stop_handler = lambda: self._leave(waiting)
        if job.stop_reason is not None:  # meanwhile
            self._leave(waiting)
        if is_starter_needed:
            self._start_thread()
        found = waiting.result()
        job.stop_handler = None
        return found

    def _leave(self, waiting: Future[Sandbox | None]) -> None:
        with self._lock:
            if waiting in self._waiting:
                self._waiting.remove(waiting)
                waiting.set_result(None)

    def _keep(self, sandbox: Sandbox) -> None:
        """Keep it for the next job, or replace it if it has reached a limit of the worker."""
        reason = reason_to_retire(
            self._assignment.work, jobs=sandbox.jobs, memory_bytes=sandbox.memory_bytes
        )
        if reason is None or self._is_closed:
            self._offer(sandbox)
            return
        _log.info("replacing a sandbox: %s", reason)
        self.warm_up()
        sandbox.dismiss()
        sandbox.reap()

    def _offer(self, sandbox: Sandbox) -> None:
        with self._lock:
            if self._waiting:
                self._waiting.popleft().set_result(sandbox)
                return
            if not self._is_closed:
                self._idle.append(sandbox)
                return
        sandbox.dismiss()
        sandbox.reap()

    def _start_thread(self) -> None:
        threading.Thread(target=self._start, name="penstock-sandbox-start", daemon=True).start()

    def _start(self) -> None:
        """Start sandboxes one after another, until no job waits for one."""
        while True:
            try:
                self._offer(self._started())
            except Exception as error:  # a job waits for an error
                if not isinstance(error, OSError):
                    _log.exception("a sandbox could not be started")
                    error = OSError(f"{type(error).__name__}: {error}")
                with self._lock:
                    if self._waiting:
                        self._waiting.popleft().set_exception(error)
            with self._lock:
                if not self._waiting or self._is_closed:
                    self._starters -= 1
                    return

    def _started(self) -> Sandbox:
        sandbox = Sandbox(self._command, self._assignment)
        with self._lock:
            self._starting.add(sandbox)
            is_closed = self._is_closed
        if is_closed:
            sandbox.kill()
        is_prepared = sandbox.prepare()
        with self._lock:
            self._starting.discard(sandbox)
        if not is_prepared:
            raise OSError(sandbox.reap().text())
        return sandbox

    # ---- running a job in it

    def _await_end(self, job: ClaimedJob, sandbox: Sandbox) -> JobAct | None:
        job.request_stop = lambda: _send(sandbox, Stop())  # the handler cannot see the flag
        try:
            sandbox.wire.send(_order(job))
        except OSError:
            return None
        while True:
            frame = sandbox.wire.receive()
            match frame:
                case ExtendLease():
                    with suppress(Exception):  # the lease is lost, so the sandbox will be killed
                        _named(job, frame.receipt).extend(
                            lease_ms=frame.lease_ms, progress=frame.progress
                        )
                case Logged():
                    if job.log is not None:
                        job.log.append(frame.line)
                case JobEnded():
                    sandbox.jobs += 1
                    sandbox.memory_bytes = frame.memory_bytes
                    if isinstance(job, Chunk):
                        job.acts = frame.acts
                    return frame.act
                case _:
                    return None

    def _report_crash(self, job: ClaimedJob, exit: ProcessExit) -> JobAct | None:
        if job.stop_reason is not None:
            return None
        seconds = (self._clock.now() - job.started_at) / 1000
        text = f"its sandbox exited: {exit.text()}; handler {job.kind}, {seconds:.1f} s running"
        return JobAct(receipt=job.receipt, verb=Verb.CRASH, text=text)


def _order(job: ClaimedJob) -> RunJob:
    if not isinstance(job, Chunk):
        return RunJob(job.message)
    first, *others = (member.message for member in job.left)
    return RunJob(first, tuple(others), is_chunk=True)


def _named(job: ClaimedJob, receipt: str | None) -> ClaimedJob:
    """The job itself, or this member of a chunk."""
    return next((member for member in job.members if member.receipt == receipt), job)


def _send(sandbox: Sandbox, frame: Stop | Interrupt) -> None:
    with suppress(OSError):
        sandbox.wire.send(frame)
