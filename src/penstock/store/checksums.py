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

from penstock.store.sqlite_log import log_of

_log = logging.getLogger("penstock.store")

RESERVED_BYTES = 8  # per page; also the mark in the file that its pages are checked
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
    """Through a connection: to open and close the file beside one would drop SQLite's locks."""
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return int(db.reserve_bytes("main")) == RESERVED_BYTES
    finally:
        db.close()


def look_at_log(db: apsw.Connection, path: Path) -> int:
    """How many commits SQLite will not bring back; if any, the log is kept aside.

    A power cut may leave some that were never acknowledged; more than that is damage.
    """
    wal = log_of(path)
    if not wal.exists() or wal.stat().st_size <= _WAL_HEADER:
        return 0
    accepted, _ = db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)
    lost, goes_on = _commits_after(wal, accepted)
    if lost and not goes_on:
        # A kill between the two writes of a frame leaves a commit mark without its page.
        _log.warning("an unfinished commit at the end of the log was dropped")
    if lost and goes_on:
        aside = wal.with_name(f"{wal.name}.damaged-{wal.stat().st_mtime_ns}")
        shutil.copyfile(wal, aside)
        _log.error("the log is damaged: %d commits in it cannot be read; see %s", lost, aside)
    return lost


def _commits_after(wal: Path, accepted: int) -> tuple[int, bool]:
    """Commits of this log behind the accepted frames, and whether anything follows the first."""
    with wal.open("rb") as file:
        header = file.read(_WAL_HEADER)
        (page_size,) = struct.unpack_from(">I", header, 8)
        salts = header[16:24]
        step = _FRAME_HEADER + page_size
        commits, goes_on = 0, False
        file.seek(_WAL_HEADER + accepted * step)
        while len(frame := file.read(_FRAME_HEADER)) == _FRAME_HEADER:
            if frame[8:16] == salts:  # an older log in the same file has other salts
                goes_on |= commits > 0
                commits += frame[4:8] != bytes(4)
            file.seek(page_size, 1)
    return commits, goes_on
