"""Makes the log that a crash or a failed sync left durable, before anything builds on it.

After a failed sync the kernel considers the pages clean: they can be read, but they are not on the
disk, and no later sync writes them.  SQLite would read such a log, accept its last commits, move
them into the database and restart the log.  If the power fails before the new log is on the disk,
the old one reappears without its end: its pages overwrite newer ones of the database, which is then
neither old nor new, but malformed.  The same is true for the log of a process that was killed: the
result of its last sync is unknown.

So every byte is written again and synced before a page is moved into the database.
"""

from __future__ import annotations

from pathlib import Path

import apsw

from penstock.domain.errors import StoreUnavailable
from penstock.store.database import WriteLockTimeout
from penstock.store.sqlite.full_disk import check_free_space

BUSY_MS = 10_000
_READS = (apsw.SQLITE_IOERR_READ, apsw.SQLITE_IOERR_SHORT_READ, apsw.SQLITE_IOERR_DATA)
_STEP = 1 << 16  # the largest page; SQLite writes less than 128 KiB at a time


def log_of(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


def is_failed_sync(error: apsw.Error) -> bool:
    """Whether it may be a failed sync; a failed read cannot."""
    code = getattr(error, "extendedresult", 0)
    return isinstance(error, apsw.IOError) and code not in _READS


def make_log_durable(path: Path) -> None:
    """Call it before opening the database.  Raises if the disk still fails."""
    log = log_of(path)
    if not path.exists() or not log.exists() or not log.stat().st_size:
        return
    check_free_space(path)
    try:
        _write_again_alone(path, log)
    except apsw.BusyError as error:
        raise WriteLockTimeout(f"another program keeps writing to {path}") from error
    except (apsw.Error, OSError) as error:
        raise StoreUnavailable(f"the log of {path} cannot be synced: {error}") from error


def _write_again_alone(path: Path, log: Path) -> None:
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        # This connection never moves a page: what it has read of the log may not be durable.
        db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        db.set_busy_timeout(BUSY_MS)
        db.execute("BEGIN IMMEDIATE")  # keeps others from writing, truncating or removing the log
        _write_again(log)
    finally:
        db.close(True)


def _write_again(log: Path) -> None:
    # Through SQLite's own VFS, like every access to its files.  Opened as a journal, because then
    # the first sync includes the directory entry; the checksum VFS ignores both.
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_MAIN_JOURNAL
    file = apsw.VFSFile("", str(log), [flags, 0])
    try:
        size = file.xFileSize()
        for start in range(0, size, _STEP):
            file.xWrite(file.xRead(min(_STEP, size - start), start), start)
        file.xSync(apsw.SQLITE_SYNC_FULL)
    finally:
        file.xClose()
