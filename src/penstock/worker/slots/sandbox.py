"""A sandbox: a process that runs one job at a time, can be killed, and may crash.

It leads its own session and process group, which include everything that its jobs start.  The group
is killed as a whole, also when the worker exits and so closes its end of the lifeline.

`Sandbox` is the worker's end, `SandboxedJobs` runs inside the process.
"""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Sequence
from contextlib import suppress
from queue import SimpleQueue

import msgspec

from penstock.ports.clock import Clock, Dice
from penstock.supervision.threads import start_logged
from penstock.worker.application import Handlers
from penstock.worker.attempt_log import JobLogBuffer
from penstock.worker.chunk import Chunk, sandboxed_chunk
from penstock.worker.claimed_job import ClaimedJob, JobAct, StopReason
from penstock.worker.handling import fail, prepare, run, run_async
from penstock.worker.processes.frames import (
    ExtendLease,
    Interrupt,
    JobEnded,
    Logged,
    Prepared,
    ProcessAssignment,
    RunJob,
    Stop,
    Wire,
)
from penstock.worker.processes.process_exit import ProcessExit, resident_bytes, wait_for
from penstock.worker.slots.lifespan import Lifespan
from penstock.worker.slots.loop_thread import LoopThread

_F_SETSIG = 10  # a constant of Linux that Python does not define
_CLOSING_S = 2.0  # limit for stop hooks and `atexit`

_lifelines: weakref.WeakSet[Lifeline] = weakref.WeakSet()


class Lifeline:
    """The worker's end of the lifeline.  The kernel closes it when the worker exits."""

    def __init__(self) -> None:
        self.theirs, self._ours = os.pipe()
        _lifelines.add(self)

    def close(self) -> None:
        ours, self._ours = self._ours, -1
        if ours >= 0:
            os.close(ours)


def bind_to_lifeline(fd: int) -> None:
    """In the sandbox: have the kernel kill its process group when the lifeline is closed.

    That also ends a computation that never yields, and the children of a job.  Only Linux supports
    it; elsewhere a thread of the sandbox notices that the worker has exited.
    """
    os.set_inheritable(fd, False)
    if sys.platform == "linux":
        fcntl.fcntl(fd, fcntl.F_SETOWN, -os.getpgrp())
        fcntl.fcntl(fd, _F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_ASYNC)


def kill_own_group() -> None:
    """In the sandbox: kill it at once, with everything that its job has started."""
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(0)


class Sandbox:
    def __init__(self, command: Sequence[str], assignment: ProcessAssignment) -> None:
        ours, theirs = socket.socketpair()
        self._lifeline = Lifeline()
        with theirs:
            fds = [theirs.fileno(), self._lifeline.theirs]
            try:
                self._process = subprocess.Popen(
                    [*command, *map(str, fds)], pass_fds=fds, start_new_session=True
                )
            except OSError:
                ours.close()
                self._lifeline.close()
                raise
            finally:
                os.close(self._lifeline.theirs)
        self._lock = threading.Lock()
        self._is_reaped = False
        self.wire = Wire(ours)
        self.jobs = 0  # jobs finished here
        self.memory_bytes = 0  # resident memory after the last job
        with suppress(OSError):  # it has exited, which `prepare` notices
            self.wire.send(assignment)

    def prepare(self) -> bool:
        """Wait until the application is loaded and started; False if the process exited instead."""
        return isinstance(self.wire.receive(), Prepared)

    @property
    def is_alive(self) -> bool:
        with self._lock:
            options = os.WEXITED | os.WNOWAIT | os.WNOHANG
            return not self._is_reaped and not os.waitid(os.P_PID, self._process.pid, options)

    def kill(self) -> None:
        """Kill it with everything that its job has started."""
        with self._lock:
            self._kill_group()

    def dismiss(self) -> None:
        """Ask it to exit, running stop hooks and `atexit` handlers; `reap` waits for that."""
        self.wire.close()

    def reap(self) -> ProcessExit:
        """Wait a short time for its exit, then kill everything that is left of it."""
        self.wire.close()
        too_long = threading.Timer(_CLOSING_S, self.kill)
        too_long.start()
        os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
        too_long.cancel()
        with self._lock:
            self._kill_group()  # processes that a job has left behind
            self._is_reaped = True
            self._lifeline.close()
            return wait_for(self._process) or ProcessExit(0, 0)

    def _kill_group(self) -> None:
        if not self._is_reaped:  # otherwise the pid may belong to another process
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)


class SandboxedJobs:
    """Inside the sandbox: runs one job after another, on the main thread."""

    def __init__(self, handlers: Handlers, wire: Wire, clock: Clock, dice: Dice) -> None:
        self._handlers = handlers
        self._wire = wire
        self._clock = clock
        self._dice = dice
        self._loop = LoopThread()
        self._lifespan = Lifespan(handlers.worker_hooks, self._loop)
        self._inbox: SimpleQueue[ClaimedJob | None] = SimpleQueue()
        self._running: ClaimedJob | None = None

    def run(self) -> None:
        """Run jobs until the worker dismisses the sandbox.  Raises StartFailed."""
        self._lifespan.start()
        self._wire.send(Prepared())
        # A sandbox that does not answer is replaced by its worker.
        start_logged("penstock-sandbox", self._receive, on_failure=lambda _: kill_own_group())
        while (job := self._inbox.get()) is not None:
            act = self._run(job)
            self._running = None
            acts = tuple(job.acts) if isinstance(job, Chunk) else ()
            self._wire.send(JobEnded(act, acts, resident_bytes()))
        self._lifespan.stop()
        self._loop.close()
        self._loop.join()

    def _receive(self) -> None:
        while True:
            match self._wire.receive():
                case RunJob() as frame:
                    self._running = job = self._received(frame)
                    self._inbox.put(job)
                case Stop():
                    running = self._running
                    for each in (running, *running.members) if running is not None else ():
                        each.is_stopping = True
                case Interrupt() as frame:
                    if self._running is not None and self._running.receipt == frame.receipt:
                        self._running.stop(StopReason.LEASE_LOST)
                case _:
                    if self._running is not None:
                        kill_own_group()
                    self._inbox.put(None)
                    return

    def _received(self, frame: RunJob) -> ClaimedJob:
        jobs = [
            ClaimedJob(**msgspec.structs.asdict(message), on_extend=self._extend)
            for message in (frame.job, *frame.others)
        ]
        return sandboxed_chunk(jobs) if frame.is_chunk else jobs[0]

    def _extend(self, job: ClaimedJob, lease_ms: int | None, progress: str | None) -> None:
        """Ask the worker to extend.  A lost lease raises nothing: the worker kills this process."""
        is_member = self._running is not job
        self._wire.send(ExtendLease(lease_ms, progress, job.receipt if is_member else None))

    def _run(self, job: ClaimedJob) -> JobAct:
        """Run a job; whatever it raises, the sandbox sends an answer and keeps running."""
        try:
            act = self._prepare(job)
            if act is not None:
                return act
            if job.handler is not None and job.handler.is_async:
                return self._await(job)
            return run(job, self._handlers, self._dice, self._loop.wait)
        except BaseException as error:  # a task that cancelled itself, or a broken event loop
            return fail(job, error)

    def _await(self, job: ClaimedJob) -> JobAct:
        future = self._loop.submit(run_async(job, self._handlers, self._dice))

        def stop() -> None:
            future.cancel()

        job.stop_handler = stop
        if job.stop_reason is not None:  # it was interrupted meanwhile
            stop()
        return future.result()

    def _prepare(self, job: ClaimedJob) -> JobAct | None:
        for each in job.members or (job,):
            act = prepare(self._handlers, each, self._clock)
            if act is not None:
                return act
        if job.members:
            job.handler = job.members[0].handler
        if job.handler is not None and job.handler.keeps_logs:
            job.log = JobLogBuffer(self._clock, on_line=lambda line: self._wire.send(Logged(line)))
        return None


def _reset_in_child() -> None:
    """In a forked child of a job: close what would keep sandboxes alive without their worker."""
    for lifeline in list(_lifelines):
        lifeline.close()


os.register_at_fork(after_in_child=_reset_in_child)
