"""Checkpoints in a second thread: moves SQLite's log into the database while the writer commits.

Moving and syncing ten thousand pages takes about 50 ms, and a writer that does it answers no
request meanwhile.  SQLite lets a second connection copy them while the writer appends commits.  The
writer then moves only the pages that were added meanwhile, which takes 2 to 5 ms.

A sync of the log that fails here may have covered frames of a commit in progress.  Linux reports
the failure to every descriptor that was open at that time: the writer's own sync fails, too, and
nothing is acknowledged.  So this connection is kept, with its files open all the time.  A failed
sync of the database is reported to one descriptor only; its process marks the store before the log
can be restarted.  On systems other than Linux the writer moves the log itself.
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
    """Called under the write lock, by the thread that uses the writer's connection."""

    is_possible = sys.platform == "linux"

    def __init__(self, path: str, on_failed: Callable[[], None]) -> None:
        self._path = path
        self._on_failed = on_failed  # called after a failed sync, by the thread that detects it
        self._db: apsw.Connection | None = None
        self._thread: threading.Thread | None = None
        self.has_begun = False  # and `rest` was not called yet
        self.has_failed = False

    @property
    def is_moving(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def begin(self) -> bool:
        """Start a move; False if it cannot start: then the writer moves the log itself."""
        self.rest()
        if not self.is_possible:
            return False
        try:
            if self._db is None:
                self._db = _connect(self._path)
            thread = start_logged("penstock-mover", partial(self._move, self._db))
        except (apsw.Error, RuntimeError):  # too many files or threads, most likely
            return False
        self._thread, self.has_begun = thread, True
        return True

    def rest(self) -> None:
        """Reset after a move has ended."""
        self._thread, self.has_begun = None, False

    def close(self) -> None:
        """Stop moving; returns when the move has ended."""
        if self._thread is not None and self._db is not None:
            self._db.interrupt()
            self._thread.join()
        self.rest()
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
            # The writer gets any other error as well, when it moves the rest.


def sync_ahead(path: str) -> None:
    """Sync an open database, so that little is left for SQLite to sync; raises OSError.

    Uses SQLite's own descriptor: closing one of ours would drop SQLite's locks on the file.
    """
    descriptor = own_descriptor(path)
    if descriptor is None:
        return  # the sync only takes longer then
    try:
        os.fdatasync(descriptor)
    except OSError as error:
        if error.errno not in (EBADF, EINVAL):  # closed or reused meanwhile
            raise


def _connect(path: str) -> apsw.Connection:
    db = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        # The writer closes last and then moves what is left.
        db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        db.pragma("synchronous", "full")
        db.pragma("schema_version")  # a connection that has read nothing does not see the log
    except BaseException:
        db.close(True)
        raise
    return db
