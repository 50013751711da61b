"""When a process has run enough jobs and is replaced, so that leaked memory is freed.  Pure,
except `resident_bytes`.
"""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

from penstock.worker.assignment import Assignment

_MIB = 1024**2
_STATM = Path("/proc/self/statm")


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
