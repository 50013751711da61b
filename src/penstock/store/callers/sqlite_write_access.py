"""The write lock for a caller's own transaction on a shared SQLite file.

The caller's connection polls SQLite's lock with its own timeout, and could starve while other
writers queue up for the write lock.  So the caller acquires the write lock, too, and releases it as
soon as SQLite lets it write: from then on the others wait for SQLite.  A caller that is writing
already must not wait for the write lock, because its holder may be waiting for the caller.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.domain.errors import StoreUnavailable
from penstock.store.database import WriteLockTimeout
from penstock.store.sqlite.shared_connection import MOVE_MS, LogMoveTimer, move_log
from penstock.store.sqlite.write_lock import WriteLock
from penstock.supervision.health import NodeHealth
from penstock.supervision.threads import start_logged

_log = logging.getLogger("penstock.store")


class CallerWriteLock:
    """One for all callers of a process, which acquire it one by one."""

    def __init__(
        self, path: Path, moves: LogMoveTimer, *, patience_ms: int, health: NodeHealth
    ) -> None:
        self._path = path
        self._health = health
        self._moves = moves
        self._patience_ms = patience_ms
        self._lock = threading.Lock()
        self._write_lock: WriteLock | None = None  # created when first needed
        self._is_closed = False

    @contextmanager
    def acquire(self, *, wait_ms: int) -> Iterator[None]:
        """Hold the write lock inside the block; raises WriteLockTimeout after `wait_ms`."""
        if not self._lock.acquire(timeout=wait_ms / 1000):
            raise WriteLockTimeout(
                f"other callers of this process have been waiting to write for {wait_ms} ms"
            )
        try:
            write_lock = self._get_write_lock()
            if not write_lock.acquire(wait=wait_ms > 0, patience_ms=wait_ms):
                raise WriteLockTimeout("another process writes to the store")
            try:
                if write_lock.has_failed_sync:
                    move_log(self._path, again=True, patience_ms=self._patience_ms)
                    write_lock.clear_failed_sync()
                yield
            finally:
                write_lock.release()
                if self._is_closed:
                    write_lock.close()
        finally:
            self._lock.release()

    def after_use(self) -> None:
        """Start to move the log from time to time, as callers do not (sqlite_caller.py)."""
        if self._moves.is_due():
            # In a thread: it waits for the caller, which is about to commit.
            start_logged("penstock-mover", self._move_log)

    def close(self) -> None:
        self._is_closed = True
        if self._lock.acquire(blocking=False):  # otherwise its holder closes it
            try:
                if self._write_lock is not None:
                    self._write_lock.close()
            finally:
                self._lock.release()

    def _get_write_lock(self) -> WriteLock:
        if self._write_lock is None:
            self._write_lock = WriteLock(
                self._path, patience_ms=self._patience_ms, health=self._health
            )
        return self._write_lock

    def _move_log(self) -> None:
        try:
            with self.acquire(wait_ms=self._patience_ms):
                try:
                    move_log(self._path, patience_ms=MOVE_MS)
                except WriteLockTimeout:
                    raise
                except StoreUnavailable:
                    self._get_write_lock().mark_failed_sync()
                    raise
        except StoreUnavailable as error:
            self._moves.postpone()
            _log.warning("the log could not be moved into the database: %s", error)
