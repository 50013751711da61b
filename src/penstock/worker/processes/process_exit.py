"""How a process ended, as far as its parent can see; and when one has run enough jobs."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import msgspec

from penstock.worker.assignment import Assignment

# Exit codes; the first two are those of sysexits.h (SOFTWARE and CONFIG).
LOOP_FAILED = 70  # a job has broken the event loop
UNUSABLE = 78  # the application cannot be loaded
RETIRED = 79  # the process reached a limit of its assignment and will be replaced

_KILLED = "by an operator, or by the system because memory ran out"
_CODES = {LOOP_FAILED: " (its event loop failed)"}
_MIB = 1024**2
_STATM = Path("/proc/self/statm")


class ProcessExit(msgspec.Struct, frozen=True):
    code: int  # as in Popen: the negative number of a signal
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


def wait_for(process: subprocess.Popen[bytes]) -> ProcessExit | None:
    """None while it runs.  Only the first waiter gets the memory usage, so no other may wait."""
    try:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
    except ChildProcessError:  # other code has waited for the process
        return ProcessExit(process.returncode or 0, 0)
    if not pid:
        return None
    process.returncode = os.waitstatus_to_exitcode(status)  # keeps Popen from waiting itself
    unit = 1024 if sys.platform == "darwin" else 1  # macOS reports bytes
    return ProcessExit(process.returncode, usage.ru_maxrss // unit)


def reason_to_retire(assignment: Assignment, *, jobs: int, memory_bytes: int) -> str | None:
    """Why to replace the process; None if it continues.  `jobs`: how many it has finished."""
    if assignment.max_jobs is not None and jobs >= assignment.max_jobs:
        return f"jobs finished: {jobs}"
    if assignment.max_memory_bytes is not None and memory_bytes > assignment.max_memory_bytes:
        limit = assignment.max_memory_bytes // _MIB
        return f"its resident memory is {memory_bytes // _MIB} MiB, the limit {limit} MiB"
    return None


def has_limits(assignment: Assignment) -> bool:
    return assignment.max_jobs is not None or assignment.max_memory_bytes is not None


def resident_bytes() -> int:
    """The resident memory of this process; its peak where the system does not report it."""
    try:
        return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
