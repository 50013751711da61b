"""A look at the head of a SQLite file without doing harm to whoever has it open.

When a process closes any descriptor of a file, the system drops all locks that the process has on
it, those of SQLite included.  So a descriptor that somebody beside us may rely on is not closed.
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
    """How many bytes each page keeps free; None: there is no database yet."""
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
    """What a file is, by whatever name it is called."""
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
        return True  # nobody can tell
    for other in others:
        with suppress(OSError):
            found = os.fstat(other)
            if other != file and (found.st_dev, found.st_ino) == key:
                return True
    return False
