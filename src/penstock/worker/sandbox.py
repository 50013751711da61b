"""A sandbox: a process that runs one job at a time, can be killed, and may crash.

It leads a session and a process group of its own with everything that its jobs start; the group is
killed as a whole, also when the worker exits, which holds one end of a lifeline.

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
from penstock.worker.claimed_job import ClaimedJob, JobAct
from penstock.worker.frames import (
    ExtendLease,
    JobEnded,
    Prepared,
    ProcessAssignment,
    RunJob,
    Stop,
    Wire,
)
from penstock.worker.handling import fail, prepare, run, run_async
from penstock.worker.lifespan import Lifespan
from penstock.worker.loop_thread import LoopThread
from penstock.worker.process_exit import ProcessExit, wait_for
from penstock.worker.retirement import resident_bytes

_F_SETSIG = 10  # of Linux; Python has no name for it
_CLOSING_S = 2.0  # for stop hooks and `atexit`

_lifelines: weakref.WeakSet[Lifeline] = weakref.WeakSet()


class Lifeline:
    """The end that the worker holds.  The kernel closes it when the worker exits."""

    def __init__(self) -> None:
        self.theirs, self._ours = os.pipe()
        _lifelines.add(self)

    def close(self) -> None:
        ours, self._ours = self._ours, -1
        if ours >= 0:
            os.close(ours)


def hang_by(fd: int) -> None:
    """In the sandbox: when the lifeline is cut, the kernel kills its process group.

    That also ends a computation that never yields, and the children of a job.  Only Linux supports
    it; elsewhere a thread of the sandbox notices that the worker has exited.
    """
    os.set_inheritable(fd, False)
    if sys.platform == "linux":
        fcntl.fcntl(fd, fcntl.F_SETOWN, -os.getpgrp())
        fcntl.fcntl(fd, _F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_ASYNC)


def kill_own_group() -> None:
    """In the sandbox: end it at once, with everything that its job has started."""
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
        self.jobs = 0  # finished
        self.memory_bytes = 0  # after the last one
        with suppress(OSError):  # it has exited, which `prepare` notices
            self.wire.send(assignment)

    def prepare(self) -> bool:
        """Wait until the application is loaded and started; False: it exited instead."""
        return isinstance(self.wire.receive(), Prepared)

    @property
    def is_alive(self) -> bool:
        with self._lock:
            options = os.WEXITED | os.WNOWAIT | os.WNOHANG
            return not self._is_reaped and not os.waitid(os.P_PID, self._process.pid, options)

    def kill(self) -> None:
        """With everything that its job has started."""
        with self._lock:
            self._kill_group()

    def dismiss(self) -> None:
        """Let it exit: stop hooks and `atexit` handlers run.  `reap` waits for that."""
        self.wire.close()

    def reap(self) -> ProcessExit:
        """Wait for its exit, not for long, and kill everything that is left of it."""
        self.wire.close()
        too_long = threading.Timer(_CLOSING_S, self.kill)
        too_long.start()
        os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
        too_long.cancel()
        with self._lock:
            self._kill_group()  # what a job has left behind
            self._is_reaped = True
            self._lifeline.close()
            return wait_for(self._process) or ProcessExit(0, 0)

    def _kill_group(self) -> None:
        if not self._is_reaped:  # otherwise its pid may be another process's
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)


class SandboxedJobs:
    """Inside the sandbox: runs one job after the other, on the main thread."""

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
        """Until the worker dismisses the sandbox.  Raises StartFailed."""
        self._lifespan.start()
        self._wire.send(Prepared())
        # A sandbox that does not answer is replaced by its worker.
        start_logged("penstock-sandbox", self._receive, on_failure=lambda _: kill_own_group())
        while (job := self._inbox.get()) is not None:
            act = self._run(job)
            self._running = None
            self._wire.send(JobEnded(act, resident_bytes()))
        self._lifespan.stop()
        self._loop.close()
        self._loop.join()

    def _receive(self) -> None:
        while True:
            match self._wire.receive():
                case RunJob() as frame:
                    fields = msgspec.structs.asdict(frame.job)
                    self._running = job = ClaimedJob(**fields, on_extend=self._extend)
                    self._inbox.put(job)
                case Stop():
                    if self._running is not None:
                        self._running.is_stopping = True
                case _:
                    if self._running is not None:
                        kill_own_group()
                    self._inbox.put(None)
                    return

    def _extend(self, job: ClaimedJob, lease_ms: int | None, progress: str | None) -> None:
        """A lost lease is not raised: the worker kills this process."""
        self._wire.send(ExtendLease(lease_ms, progress))

    def _run(self, job: ClaimedJob) -> JobAct:
        """Whatever the job raises, the sandbox has an answer and keeps running."""
        try:
            act = prepare(self._handlers, job, self._clock)
            if act is not None:
                return act
            if job.handler is not None and job.handler.is_async:
                return self._loop.wait(run_async(job, self._handlers, self._dice))
            return run(job, self._handlers, self._dice, self._loop.wait)
        except BaseException as error:  # a task that cancels itself, a broken event loop
            return fail(job, error)


def _forked() -> None:
    """A forked child of a job must not keep sandboxes alive when the worker has exited."""
    for lifeline in list(_lifelines):
        lifeline.close()


os.register_at_fork(after_in_child=_forked)
