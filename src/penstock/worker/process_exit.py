"""How a process ended, as far as its parent can tell."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress

import msgspec

LOOP_FAILED = 70  # exit code: a job has broken the event loop; sysexits calls it SOFTWARE
_KILLED = "by hand, or by the system for want of memory"
_CODES = {LOOP_FAILED: " (its event loop failed)"}


class Death(msgspec.Struct, frozen=True):
    code: int  # as Popen has it: the negative number of a signal
    peak_kb: int  # of resident memory

    def text(self) -> str:
        memory = f"peak memory {self.peak_kb // 1024} MB"
        if self.code >= 0:
            return f"exit code {self.code}{_CODES.get(self.code, '')}, {memory}"
        name = signal_name(-self.code)
        why = f" ({_KILLED})" if -self.code == signal.SIGKILL else ""
        return f"signal {name}{why}, {memory}"


def signal_name(number: int) -> str:
    with suppress(ValueError):
        return signal.Signals(number).name
    return str(number)


def wait_for(process: subprocess.Popen[bytes]) -> Death | None:
    """None: it lives.  Only the one who waits hears of the memory, so nobody else may."""
    try:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
    except ChildProcessError:  # somebody else has waited
        return Death(process.returncode or 0, 0)
    if not pid:
        return None
    process.returncode = os.waitstatus_to_exitcode(status)  # it must not wait itself
    unit = 1024 if sys.platform == "darwin" else 1  # there it is told in bytes
    return Death(process.returncode, usage.ru_maxrss // unit)
