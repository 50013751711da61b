"""SQLite's log is moved into the database beside the writer, who goes on meanwhile.

To move ten thousand pages and to sync them takes some 50 ms, in which nobody would be answered.
SQLite lets a second connection copy them while commits go on behind.  What is left for the writer,
the pages that came meanwhile, takes 2 to 5 ms.

A sync of the log that fails here may have been for frames of a commit that is under way there.
Linux tells everybody of it who had the file open: the writer's own sync fails then, too, and
nothing is acknowledged.  That is why this connection is kept: its files have been open all the
time.  A sync of the database that fails is told to one of us only; whoever it is leaves word for
everybody before the log may begin anew.  Elsewhere than on Linux the writer moves the log itself.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable
from errno import EBADF, EINVAL
from functools import partial

import apsw

from penstock.store.sqlite.full_disk import own_descriptor
from penstock.store.sqlite.log_sync import is_failed_sync
from penstock.supervision.threads import start_logged

_log = logging.getLogger("penstock.store")


class LogMover:
    """Used by the thread that uses the writer's connection, in its turn."""

    is_possible = sys.platform == "linux"

    def __init__(self, path: str, on_failed: Callable[[], None]) -> None:
        self._path = path
        self._on_failed = on_failed  # of a sync; called by whichever thread finds out
        self._db: apsw.Connection | None = None
        self._thread: threading.Thread | None = None
        self.has_failed = False

    @property
    def is_moving(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    @property
    def has_ended(self) -> bool:
        """A move has, since `begin`; nobody has asked for the next one."""
        return self._thread is not None and not self._thread.is_alive()

    def begin(self) -> bool:
        """Whether a move is under way now; otherwise the writer is alone with it."""
        self._thread = None
        if not self.is_possible:
            return False
        try:
            if self._db is None:
                self._db = _connect(self._path)
            thread = start_logged("penstock-mover", partial(self._move, self._db))
        except (apsw.Error, RuntimeError):  # too many files or threads, most likely
            return False
        self._thread = thread
        return True

    def rest(self) -> None:
        """What has ended is done with."""
        self._thread = None

    def close(self) -> None:
        """Nothing is moved any more when this returns."""
        if self._thread is not None and self._db is not None:
            self._db.interrupt()
            self._thread.join()
        self._thread = None
        if self._db is not None:
            self._db.close(True)
            self._db = None

    def _move(self, db: apsw.Connection) -> None:
        try:
            db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            sync_ahead(self._path)
        except (apsw.Error, OSError) as error:
            if isinstance(error, OSError) or is_failed_sync(error):
                _log.warning("the log could not be moved into the database: %s", error)
                self.has_failed = True
                self._on_failed()
            # Anything else the writer meets as well, when it moves the rest.


def sync_ahead(path: str) -> None:
    """Sync a database that is open, so that little is left for SQLite to sync; raises OSError.

    By a descriptor of SQLite's own: to close one of ours would drop SQLite's locks on the file.
    """
    descriptor = own_descriptor(path)
    if descriptor is None:
        return  # nothing is lost, but time
    try:
        os.fdatasync(descriptor)
    except OSError as error:
        if error.errno not in (EBADF, EINVAL):  # closed just now, or something else by now
            raise


def _connect(path: str) -> apsw.Connection:
    db = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        # The writer is the last to close, and then moves what is left.
        db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        db.pragma("synchronous", "full")
        db.pragma("schema_version")  # before it has read anything it knows of no log
    except BaseException:
        db.close(True)
        raise
    return db
