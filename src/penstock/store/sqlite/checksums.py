"""Checksums on every page of the database.

A bit that flips on the disk must not go unnoticed.  SQLite alone returns wrong rows without an
error (measured: 147 of 200 flips); with its checksum VFS every read of a damaged page fails.  The
log has checksums of its own; see log_damage.py.
"""

from __future__ import annotations

import logging
from functools import cache
from pathlib import Path

import apsw

_log = logging.getLogger("penstock.store")

RESERVED_BYTES = 8  # per page; a file that has them has checksums


@cache
def turn_on() -> bool:
    """Verify pages of files that have checksums; called once per process, cached."""
    try:
        import apsw.sqlite_extra

        apsw.sqlite_extra.load(apsw.Connection(":memory:"), "cksumvfs")
    except (ImportError, ValueError, AttributeError, apsw.Error) as error:
        _log.warning("this apsw has no checksums (%s): flipped bits will not be noticed", error)
        return False
    return True


def integrity_error(db: apsw.Connection) -> str:
    """What SQLite's own check finds first; empty if it finds nothing."""
    found = str(db.execute("PRAGMA integrity_check(1)").get)
    return "" if found == "ok" else found


def has_checksums(path: Path) -> bool:
    """Reads it through a connection: closing our own descriptor would drop SQLite's locks."""
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return int(db.reserve_bytes("main")) == RESERVED_BYTES
    finally:
        db.close()
