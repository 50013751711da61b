"""The transactions of a SQLite connection, which hold the write lock between processes."""

from __future__ import annotations

from typing import Any, Protocol

from penstock.domain.errors import StoreUnavailable
from penstock.store.damage.log_damage import SYNC_AFTER
from penstock.store.database import Row
from penstock.store.sqlite.busy_wait import BusyWait
from penstock.store.sqlite.write_lock import WriteLock


class WriteLockMixin(Protocol):
    """The transactions of a SQLite connection, which hold the write lock."""

    is_alive: bool  # False: a sync failed, so the connection's cache may be wrong
    _write_lock: WriteLock | None  # None: read-only, or no other process uses the file
    _busy_wait: BusyWait
    _db: Any  # its connection
    _is_read_only: bool
    _is_synced: bool = True
    _unsynced: int = 0  # commits since the last one that was synced
    _version: object = None

    def execute(self, text: str) -> list[Row]: ...
    def _execute_patiently(self, text: str) -> list[Row]:
        """Execute, waiting for other connections that hold SQLite's lock."""
        ...

    def begin(self, *, durable: bool) -> None:
        if self._is_read_only:
            self.execute("BEGIN")
            return
        self._ensure_write_lock()
        # Limits the commits that a power cut can tear; if more are missing, it is damage.
        durable = durable or self._unsynced >= SYNC_AFTER
        try:
            if durable != self._is_synced:
                # NORMAL does not wait for the disk at a commit; the next FULL one syncs it too.
                self.execute(f"PRAGMA synchronous = {'full' if durable else 'normal'}")
                self._is_synced = durable
            self._execute_patiently("BEGIN IMMEDIATE")
        except BaseException:
            self.release_write_lock()
            raise

    def rollback(self) -> None:
        try:
            if self._db.in_transaction:
                self.execute("ROLLBACK")
        finally:
            self.release_write_lock()

    def has_changed(self) -> bool:
        """Whether another connection may have committed since the last call."""
        before, self._version = self._version, self.execute("PRAGMA data_version")
        return before != self._version

    def acquire_write_lock(self, *, wait: bool, patience_ms: int | None = None) -> bool:
        if self._write_lock is None:
            return True
        self._busy_wait.is_short = not wait
        if not self._write_lock.acquire(wait=wait, patience_ms=patience_ms):
            return False
        if self._write_lock.has_failed_sync:
            self.is_alive = False
        return True

    def release_write_lock(self) -> None:
        if self._write_lock is not None:
            self._write_lock.release()

    def _ensure_write_lock(self) -> None:
        """Acquire the write lock unless we have it."""
        if self._write_lock is None or self._write_lock.is_acquired:
            return
        self.acquire_write_lock(wait=True)
        if not self.is_alive:
            self.release_write_lock()
            raise StoreUnavailable("a sync has failed, and the log is not durable yet")

    def _mark_failed_sync(self) -> None:
        """A sync may have failed: no process may build on the log until it is durable."""
        if self._write_lock is not None and self._write_lock.is_acquired:
            self._write_lock.mark_failed_sync()

    def _mark_failed_sync_at_once(self) -> None:
        """Needs no write lock: no process clears the mark while we have the store open."""
        if self._write_lock is not None:
            self._write_lock.mark_failed_sync()
