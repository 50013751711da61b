"""SQLite's log is moved into the database beside the writer, who goes on meanwhile.

To move ten thousand pages and to sync them takes some 50 ms, in which nobody would be answered.
SQLite lets another connection move them while commits go on behind; what is left for the writer
takes 2 to 5 ms.

A sync that fails there may have been for frames of a commit that is under way here.  Linux tells
everybody who has the file open of it: the writer's own sync fails then, too, and nothing is
acknowledged.  Where that is not known to be so, the writer waits.
"""

from __future__ import annotations

import os
import sys
import threading
from errno import EBADF, EINVAL
from pathlib import Path

import apsw

_BUSY_MS = 1_000
_OPEN_FILES = "/proc/self/fd"


class LogMover:
    """Used by one thread at a time, whose own connection stays open until `wait` returns."""

    is_beside = sys.platform == "linux"

    def __init__(self, path: Path) -> None:
        self._path = path
        self._thread: threading.Thread | None = None
        self._error: Exception | None = None

    def begin(self) -> None:
        self._thread = threading.Thread(target=self._move, name="penstock-mover", daemon=True)
        self._thread.start()
        if not self.is_beside:
            self._thread.join()

    @property
    def is_idle(self) -> bool:
        """Nothing was begun whose end has not been heard of."""
        return self._thread is None

    @property
    def is_moving(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def end(self) -> None:
        """After a move; raises what went wrong with it."""
        self._thread = None
        error, self._error = self._error, None
        if error is not None:
            raise error

    def wait(self) -> None:
        """Nothing is moved any more when this returns."""
        if self._thread is not None:
            self._thread.join()

    def _move(self) -> None:
        try:
            db = apsw.Connection(str(self._path), flags=apsw.SQLITE_OPEN_READWRITE)
            try:
                db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
                db.set_busy_timeout(_BUSY_MS)
                db.pragma("synchronous", "full")
                db.pragma("schema_version")  # before it has read anything it knows of no log
                db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
                if self.is_beside:
                    sync_early(self._path)
            finally:
                db.close(True)
        except (apsw.Error, OSError) as error:
            self._error = error


def sync_early(path: Path) -> None:
    """Sync a database that is open, so that little is left for SQLite to sync later.

    By a descriptor of SQLite's own: to close one of ours would drop SQLite's locks on the file.
    """
    there = path.stat()
    for name in os.listdir(_OPEN_FILES):
        try:
            found = os.fstat(int(name))
            if (found.st_dev, found.st_ino) == (there.st_dev, there.st_ino):
                os.fdatasync(int(name))
                return
        except OSError as error:
            if error.errno not in (EBADF, EINVAL):  # closed just now, or something else by now
                raise
