"""A sandbox: a process that does one job at a time, can be killed, and may die.

It leads a session and a process group of its own, in which everything is that its jobs start, and
the group is killed as a whole.  It also dies with its worker, which holds one end of a lifeline.
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

from penstock.worker.frames import Errand, Prepared, Wire
from penstock.worker.process_exit import Death, wait_for

_F_SETSIG = 10  # of Linux; Python has no name for it
_CLOSING_S = 2.0  # for stop hooks and `atexit`

_lifelines: weakref.WeakSet[Lifeline] = weakref.WeakSet()


class Lifeline:
    """The end that the worker holds.  The kernel closes it when the worker dies."""

    def __init__(self) -> None:
        self.theirs, self._ours = os.pipe()
        _lifelines.add(self)

    def close(self) -> None:
        ours, self._ours = self._ours, -1
        if ours >= 0:
            os.close(ours)


def hang_by(fd: int) -> None:
    """In the sandbox: when the lifeline is cut, the kernel kills its process group.

    Also in the middle of a computation that never yields, and children of a job as well.  Only
    Linux can do that; elsewhere a thread of the sandbox finds that the worker is gone.
    """
    os.set_inheritable(fd, False)
    if sys.platform == "linux":
        fcntl.fcntl(fd, fcntl.F_SETOWN, -os.getpgrp())
        fcntl.fcntl(fd, _F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_ASYNC)


def kill_own_group() -> None:
    """In the sandbox: end it at once, with all that its job has started."""
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(0)


class Sandbox:
    def __init__(self, command: Sequence[str], errand: Errand) -> None:
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
        with suppress(OSError):  # it is dead, which `prepare` will find
            self.wire.send(errand)

    def prepare(self) -> bool:
        """Wait until the application is loaded and started; False: it died over it."""
        return isinstance(self.wire.receive(), Prepared)

    @property
    def is_alive(self) -> bool:
        with self._lock:
            options = os.WEXITED | os.WNOWAIT | os.WNOHANG
            return not self._is_reaped and not os.waitid(os.P_PID, self._process.pid, options)

    def kill(self) -> None:
        """With all that its job has started."""
        with self._lock:
            self._kill_group()

    def dismiss(self) -> None:
        """It ends by itself: stop hooks and `atexit` handlers run.  `reap` waits for that."""
        self.wire.close()

    def reap(self) -> Death:
        """Wait for its end, not for long, and see to it that nothing of it is left."""
        self.wire.close()
        too_long = threading.Timer(_CLOSING_S, self.kill)
        too_long.start()
        os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
        too_long.cancel()
        with self._lock:
            self._kill_group()  # what a job has left behind
            self._is_reaped = True
            self._lifeline.close()
            return wait_for(self._process) or Death(0, 0)

    def _kill_group(self) -> None:
        if not self._is_reaped:  # otherwise its number may be another process's
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)


def _forked() -> None:
    """A forked child of a job must not keep sandboxes alive when the worker is gone."""
    for lifeline in list(_lifelines):
        lifeline.close()


os.register_at_fork(after_in_child=_forked)
