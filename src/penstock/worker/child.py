"""A worker process, as its supervisor sees it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Collection, Sequence
from contextlib import suppress

import msgspec

from penstock.ports.work import WorkAct
from penstock.worker.frames import Drain, Dry, Errand, Finish, Waiting, Wire, Working
from penstock.worker.job_table import Table
from penstock.worker.leftovers import acts_for
from penstock.worker.process_exit import Death, wait_for


class Child:
    """One place for a process: when it dies the next one takes over, table and all."""

    def __init__(self, command: Sequence[str], errand: Errand) -> None:
        self._command = command
        self.table = Table.create(errand.order.places)
        self._errand = msgspec.structs.replace(errand, table_fd=self.table.fd)
        self._process: subprocess.Popen[bytes] | None = None
        self._wire: Wire | None = None
        self._left: list[WorkAct] = []
        self._overdue: Collection[str] = ()
        self._is_our_doing = False
        self._is_heir = False
        self.is_doomed = False
        self.is_working = False
        self.queues: tuple[str, ...] = ()
        self.warnings: tuple[str, ...] = ()
        self.outage: str | None = None  # why its store does not answer
        self.is_dry = False  # in a burst: it has no work
        self._is_finishing = False
        self.start_at: int | None = 0
        self.started_at = 0
        self.deaths = 0  # in a row

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
        self.is_working = self.is_doomed = self._is_our_doing = False
        self.is_dry = self._is_finishing = False
        self._overdue = ()
        left = tuple(self._left)
        self._say(msgspec.structs.replace(self._errand, left=left, is_heir=self._is_heir))

    def start_heir(self, now: int) -> None:
        """Nothing is to be claimed any more, but what is left must be told; tried once."""
        self.start_at = now if self._left and not self._is_heir else None
        self._is_heir = True

    def hear(self) -> bool:
        """Something has come from it; False: that was its end."""
        frame = None if self._wire is None else self._wire.receive()
        match frame:
            case Working():
                self.is_working = True
                self.queues, self.warnings = frame.queues, frame.warnings
                self._left = []
            case Waiting():
                self.outage = frame.error
            case Dry():
                self.is_dry = frame.is_dry
        return frame is not None

    def look(self) -> Death | None:
        """How it died, if it has."""
        return None if self._process is None else wait_for(self._process)

    def bury(self, death: Death, now: int) -> None:
        """It is dead: note what becomes of what it held."""
        self._left += acts_for(
            self.table.entries(),
            death,
            now=now,
            worker_id=self.table.worker_id,
            overdue=self._overdue,
            is_our_doing=self._is_our_doing,
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
        """Ended, and nothing takes its place."""
        return self._process is None and self.start_at is None

    def finish(self) -> None:
        """End a burst: it ends when it has no work."""
        if not self._is_finishing:
            self._is_finishing = True
            self._say(Finish())

    def drain(self, within_ms: int) -> None:
        self.start_at = None
        self._say(Drain(within_ms))

    def kill(self, *, overdue: Collection[str] = (), is_our_doing: bool = False) -> None:
        if self._process is not None and not self.is_doomed:
            self.is_doomed = True
            self._overdue = overdue
            self._is_our_doing = is_our_doing
            os.kill(self._process.pid, signal.SIGKILL)

    def close(self) -> None:
        self.kill(is_our_doing=True)
        if self._wire is not None:
            self._wire.close()
        self.table.close()

    def _say(self, frame: Errand | Drain | Finish) -> None:
        if self._wire is not None:
            with suppress(OSError):  # it is dead, which will be seen
                self._wire.send(frame)
