"""When a process has run enough jobs and is to be replaced: what leaks memory starts anew.  Pure,
but for `resident_bytes`.
"""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

from penstock.worker.assignment import Order

_MIB = 1024**2
_STATM = Path("/proc/self/statm")


def reason_to_retire(order: Order, *, jobs: int, memory_bytes: int) -> str | None:
    """None: the process goes on.  `jobs`: those that it has finished."""
    if order.max_jobs is not None and jobs >= order.max_jobs:
        return f"jobs finished: {jobs}"
    if order.max_memory_bytes is not None and memory_bytes > order.max_memory_bytes:
        limit = order.max_memory_bytes // _MIB
        return f"its resident memory is {memory_bytes // _MIB} MiB, the limit {limit} MiB"
    return None


def has_limits(order: Order) -> bool:
    return order.max_jobs is not None or order.max_memory_bytes is not None


def resident_bytes() -> int:
    """Of this process; where the system does not report it, its peak."""
    try:
        return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
