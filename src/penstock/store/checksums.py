"""Checksums on every page of the database, and a look at the log that a crash left.

A bit that flips on the disk must not go unseen.  SQLite alone gives wrong rows and calls them good
(measured: 147 of 200 flips); with its checksum VFS each read of a damaged page is an error.  The
log has checksums of its own, but SQLite drops everything behind a bad one without a word.
"""

from __future__ import annotations

import logging
import shutil
import struct
from functools import cache
from pathlib import Path

import apsw

_log = logging.getLogger("penstock.store")

RESERVED_BYTES = 8  # per page; also the mark in the file that its pages are checked
_RESERVED_AT = 20
_WAL_HEADER = 32
_FRAME_HEADER = 24


@cache
def turn_on() -> bool:
    """Check pages of files that have room for checksums; once per process."""
    try:
        import apsw.sqlite_extra

        apsw.sqlite_extra.load(apsw.Connection(":memory:"), "cksumvfs")
    except (ImportError, ValueError, AttributeError, apsw.Error) as error:
        _log.warning("this apsw has no checksums (%s): flipped bits will not be noticed", error)
        return False
    return True


def has_checksums(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(_RESERVED_AT + 1)[_RESERVED_AT:] == bytes([RESERVED_BYTES])


def look_at_log(db: apsw.Connection, path: Path) -> int:
    """How many commits SQLite will not bring back; if any, the log is kept aside.

    A power cut may leave some that were never acknowledged; more than that is damage.
    """
    wal = path.with_name(path.name + "-wal")
    if not wal.exists() or wal.stat().st_size <= _WAL_HEADER:
        return 0
    accepted, _ = db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)
    lost = _commits_after(wal, accepted)
    if lost:
        aside = wal.with_name(f"{wal.name}.damaged-{wal.stat().st_mtime_ns}")
        shutil.copyfile(wal, aside)
        _log.error("the log is damaged: %d commits in it cannot be read; see %s", lost, aside)
    return lost


def _commits_after(wal: Path, accepted: int) -> int:
    """Frames of this log behind the accepted ones that end a transaction."""
    with wal.open("rb") as file:
        header = file.read(_WAL_HEADER)
        (page_size,) = struct.unpack_from(">I", header, 8)
        salts = header[16:24]
        step = _FRAME_HEADER + page_size
        found = 0
        file.seek(_WAL_HEADER + accepted * step)
        while len(frame := file.read(_FRAME_HEADER)) == _FRAME_HEADER:
            # An older log in the same file has other salts.
            found += frame[8:16] == salts and frame[4:8] != bytes(4)
            file.seek(page_size, 1)
    return found
