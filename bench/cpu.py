"""Processor time of a process and all below it: what a busy machine does not change."""

from __future__ import annotations

import os
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(*roots: int) -> float:
    """Also of children that have ended and were waited for."""
    parents: dict[int, int] = {}
    used: dict[int, float] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        parents[int(entry.name)] = int(fields[1])
        used[int(entry.name)] = sum(map(int, fields[11:15])) / _TICKS
    family, size = set(roots), 0
    while size != len(family):
        size = len(family)
        family |= {pid for pid, parent in parents.items() if parent in family}
    return sum(used.get(pid, 0.0) for pid in family)
