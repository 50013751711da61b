"""Reads the header of a SQLite file without disturbing connections that have it open.

When a process closes any descriptor of a file, the system drops all locks that the process has on
it, SQLite's included.  So a descriptor is not closed while the process has the file open elsewhere.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_MAGIC = b"SQLite format 3\0"
_RESERVED_AT = 20
_DESCRIPTORS = "/dev/fd"

_kept: dict[tuple[int, int], int] = {}  # by device and inode: descriptors that stay open


def reserved_bytes(path: Path) -> int | None:
    """The reserved bytes per page; None if the file has no database yet."""
    try:
        file = open_beside(path)
    except FileNotFoundError:
        return None
    try:
        head = os.pread(file, 100, 0)
    finally:
        close_beside(file)
    return head[_RESERVED_AT] if head.startswith(_MAGIC) else None


def identity(path: str | Path) -> tuple[int, int]:
    """Device and inode: the same for every name of a file."""
    found = os.stat(path)
    return found.st_dev, found.st_ino


def open_beside(path: Path) -> int:
    """A descriptor to read from; close it with `close_beside`."""
    kept = _kept.get(identity(path))
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC) if kept is None else kept


def close_beside(file: int) -> None:
    found = os.fstat(file)
    key = (found.st_dev, found.st_ino)
    if key in _kept:
        return
    if _is_open_elsewhere(file, key):
        _kept[key] = file
    else:
        os.close(file)


def _is_open_elsewhere(file: int, key: tuple[int, int]) -> bool:
    try:
        others = [int(name) for name in os.listdir(_DESCRIPTORS)]
    except OSError:
        return True  # unknown: assume so
    for other in others:
        with suppress(OSError):
            found = os.fstat(other)
            if other != file and (found.st_dev, found.st_ino) == key:
                return True
    return False
