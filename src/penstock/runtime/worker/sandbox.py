"""Sandboxes: processes that do one job at a time, can be killed, and may die.

For what must be stopped at its time limit although it does not yield, and for what has already
taken a worker with it.  Each is started when it is needed, loads the application once, and is used
again.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress

from penstock.domain.lease import Verb
from penstock.ports.clock import Clock
from penstock.ports.work import WorkAct
from penstock.runtime.worker.death import Death, wait_for
from penstock.runtime.worker.frames import Ended, Errand, Job, Prepared, Stop, Told, Wire
from penstock.runtime.worker.held import Held
from penstock.runtime.worker.retirement import reason_to_retire

_log = logging.getLogger("penstock.worker")
_AGAIN_MS = 10_000  # when a sandbox could not be started


class Sandbox:
    def __init__(self, command: Sequence[str], errand: Errand) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            fd = theirs.fileno()
            self._process = subprocess.Popen([*command, str(fd)], pass_fds=[fd])
        self._lock = threading.Lock()
        self._is_dead = False
        self.wire = Wire(ours)
        self.wire.send(errand)
        self.is_ready = False
        self.jobs = 0  # finished
        self.memory_bytes = 0  # after the last one

    def prepare(self) -> bool:
        """Wait until the application is loaded; False: it died over it."""
        if not self.is_ready:
            self.is_ready = isinstance(self.wire.receive(), Prepared)
        return self.is_ready

    def kill(self) -> None:
        with self._lock:
            if not self._is_dead:  # otherwise its number may be somebody else's
                os.kill(self._process.pid, signal.SIGKILL)

    def bury(self) -> Death:
        """It is dead, or about to be: without its wire it ends."""
        self.wire.close()
        os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
        with self._lock:
            self._is_dead = True
            return wait_for(self._process) or Death(0, 0)


class Sandboxes:
    """`run` is called by the threads of the slots, one sandbox for each that needs one."""

    def __init__(self, command: Sequence[str], errand: Errand, clock: Clock) -> None:
        self._command = command
        self._errand = errand
        self._clock = clock
        self._idle: list[Sandbox] = []
        self._lock = threading.Lock()
        self._is_closed = False

    def run(self, held: Held, begin: Callable[[Held], bool]) -> WorkAct | None:
        """None: its fate is known otherwise."""
        with self._lock:
            sandbox = self._idle.pop() if self._idle else None
        sandbox = sandbox or Sandbox(self._command, self._errand)
        held.stop = sandbox.kill
        if not sandbox.prepare():
            return self._unprepared(held, sandbox.bury())
        if not begin(held):
            held.stop = None
            self._keep(sandbox)  # for the next
            return None
        act = self._listen(held, sandbox)
        held.stop = held.ask = None
        if act is not None:
            self._keep(sandbox)
            return act
        return self._died(held, sandbox.bury())

    def warm_up(self) -> None:
        """Have one ready for the first.  By a thread that stays: a sandbox dies with its maker."""
        with self._lock:
            self._idle.append(Sandbox(self._command, self._errand))

    def close(self) -> None:
        self._is_closed = True
        with self._lock:
            idle, self._idle = self._idle, []
        for sandbox in idle:
            _dismiss(sandbox)

    def _listen(self, held: Held, sandbox: Sandbox) -> WorkAct | None:
        held.ask = lambda: _ask(sandbox)  # it cannot see the flag here
        try:
            sandbox.wire.send(Job(held.work, held.deadline))
        except OSError:
            return None
        while True:
            frame = sandbox.wire.receive()
            match frame:
                case Told():
                    with suppress(Exception):  # the lease is lost: it will be killed
                        held.extend(lease_ms=frame.lease_ms, progress=frame.progress)
                case Ended():
                    sandbox.jobs += 1
                    sandbox.memory_bytes = frame.memory_bytes
                    return frame.act
                case _:
                    return None

    def _keep(self, sandbox: Sandbox) -> None:
        reason = reason_to_retire(
            self._errand.order, jobs=sandbox.jobs, memory_bytes=sandbox.memory_bytes
        )
        if reason is not None and not self._is_closed:
            _log.info("replacing a sandbox: %s", reason)
            _dismiss(sandbox)
            try:
                sandbox = Sandbox(self._command, self._errand)
            except OSError:  # the next job that needs one tries again
                return
        with self._lock:
            if not self._is_closed:
                self._idle.append(sandbox)
                return
        _dismiss(sandbox)

    def _unprepared(self, held: Held, death: Death) -> WorkAct | None:
        if held.fate is not None:
            return None
        _log.error("no sandbox could be started: %s", death.text())
        return self.later(held)

    def later(self, held: Held) -> WorkAct:
        """It is not the job's fault."""
        return WorkAct(receipt=held.work.receipt, verb=Verb.RELEASE, delay_ms=_AGAIN_MS)

    def _died(self, held: Held, death: Death) -> WorkAct | None:
        if held.fate is not None:
            return None
        seconds = (self._clock.now() - held.started_at) / 1000
        text = (
            f"its sandbox died: {death.text()}; handler {held.work.kind}, {seconds:.1f} s running"
        )
        return WorkAct(receipt=held.work.receipt, verb=Verb.CRASH, text=text)


def _dismiss(sandbox: Sandbox) -> None:
    sandbox.kill()
    sandbox.bury()


def _ask(sandbox: Sandbox) -> None:
    with suppress(OSError):
        sandbox.wire.send(Stop())
