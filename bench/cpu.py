"""Processor time and memory of a process and all below it."""

from __future__ import annotations

import os
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def cpu_seconds(*roots: int) -> float:
    """Also of children that have ended and were waited for: a busy machine does not change it."""
    used = {pid: sum(map(int, fields[11:15])) / _TICKS for pid, fields in _family(roots).items()}
    return sum(used.values())


def resident_bytes(*roots: int) -> dict[int, int]:
    """The memory of each process."""
    return {pid: int(fields[21]) * _PAGE for pid, fields in _family(roots).items()}


def _family(roots: tuple[int, ...]) -> dict[int, list[str]]:
    """The fields of /proc/PID/stat after the name, of these processes and all below them."""
    found: dict[int, list[str]] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        found[int(entry.name)] = fields
    family, size = set(roots), 0
    while size != len(family):
        size = len(family)
        family |= {pid for pid, fields in found.items() if int(fields[1]) in family}
    return {pid: fields for pid, fields in found.items() if pid in family}
