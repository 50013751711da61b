"""Mixin: hold the cross-process write lock around a transaction; see write_lock.py."""

from __future__ import annotations

from penstock.domain.errors import StoreUnavailable
from penstock.store.sqlite.busy_wait import BusyWait
from penstock.store.sqlite.write_lock import WriteLock


class WriteLockMixin:
    is_alive: bool  # False: a sync failed, so the connection's cache may be wrong
    _write_lock: WriteLock | None  # None: read-only, or no other process uses the file
    _busy_wait: BusyWait

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
