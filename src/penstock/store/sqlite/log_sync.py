"""A log that a crash or a failed sync left, made durable before anybody builds on it.

After a failed sync the kernel takes the pages for clean: they can be read, but they are not on the
disk, and no later sync writes them.  SQLite would read such a log, believe its last commits, move
them into the database, and start the log anew.  If the power fails before the new log is on the
disk, the old one is there again, without its end: its pages go over newer ones of the database,
which is then neither old nor new, but malformed.  The same is true for the log of a process that
was killed: nobody knows what became of its last sync.

So every byte is written once more, and synced, before one page goes into the database.
"""

from __future__ import annotations

from pathlib import Path

import apsw

from penstock.domain.errors import StoreUnavailable
from penstock.store.database import Occupied
from penstock.store.sqlite.full_disk import check_free_space

BUSY_MS = 10_000
_READS = (apsw.SQLITE_IOERR_READ, apsw.SQLITE_IOERR_SHORT_READ, apsw.SQLITE_IOERR_DATA)
_STEP = 1 << 16  # SQLite writes less than 128 KiB at a time: one page is never more than half of it


def log_of(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


def is_failed_sync(error: apsw.Error) -> bool:
    """May it be one?  Whoever cannot read has not written, either."""
    code = getattr(error, "extendedresult", 0)
    return isinstance(error, apsw.IOError) and code not in _READS


def make_log_durable(path: Path) -> None:
    """Before the database is opened.  Raises if the disk still fails; then nothing has changed."""
    log = log_of(path)
    if not path.exists() or not log.exists() or not log.stat().st_size:
        return
    check_free_space(path)
    try:
        _write_again_alone(path, log)
    except apsw.BusyError as error:
        raise Occupied(f"another program writes to {path}, and does not end") from error
    except (apsw.Error, OSError) as error:
        raise StoreUnavailable(f"the log of {path} cannot be synced: {error}") from error


def _write_again_alone(path: Path, log: Path) -> None:
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        # What this connection believes of the log it forgets: it never moves a page.
        db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        db.set_busy_timeout(BUSY_MS)
        db.execute("BEGIN IMMEDIATE")  # nobody can write to the log, shorten it or remove it now
        _write_again(log)
    finally:
        db.close(True)


def _write_again(log: Path) -> None:
    # Through SQLite's own layer, as all that happens to its files.  As a journal, because that is
    # what makes the first sync take the file's name along; the checksums leave both alone.
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_MAIN_JOURNAL
    file = apsw.VFSFile("", str(log), [flags, 0])
    try:
        size = file.xFileSize()
        for start in range(0, size, _STEP):
            file.xWrite(file.xRead(min(_STEP, size - start), start), start)
        file.xSync(apsw.SQLITE_SYNC_FULL)
    finally:
        file.xClose()
