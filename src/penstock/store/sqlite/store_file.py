"""The file of a SQLite store with checksums, which no application shares."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

from penstock.domain.errors import StoreUnavailable
from penstock.store.callers.caller_transactions import SqliteCallerTransactions
from penstock.store.commit.session import SqlSession
from penstock.store.damage.damage_watch import DamageWatch
from penstock.store.maintenance import migrate as migrations
from penstock.store.sqlite.connection import OpenElsewhere, SqliteDatabase, open_synced
from penstock.store.sqlite.file_access import StoreFileAccess
from penstock.store.sqlite.wakeups import ask_to_close
from penstock.store.sqlite.write_lock import PATIENCE_MS
from penstock.supervision.health import NodeHealth

_TRIES = 20
_BETWEEN_TRIES_S = 0.05  # other processes close within milliseconds, unless they are stopped

_log = logging.getLogger("penstock.store")


class SqliteStoreFile(StoreFileAccess):
    def __init__(
        self, path: Path, *, patience_ms: int = PATIENCE_MS, health: NodeHealth | None = None
    ) -> None:
        super().__init__(path, patience_ms=patience_ms, health=health)
        self.callers = SqliteCallerTransactions(
            path, write_lock=None
        )  # they refuse: the file has checksums
        self._pause = threading.Event()  # never set

    def migrate(self, *, now: int) -> list[migrations.Migration]:
        """Safe in several processes at once: each skips the migrations that another has applied."""
        db = self._open_synced()
        try:
            applied = migrations.apply(db, now=now)
        except BaseException:
            db.abandon()
            raise
        db.close()
        return applied

    def open_writer(self) -> SqlSession:
        if self._store is None:
            return SqlSession(self._open_synced(damage_watch=self.damage_watch))
        # After a storage error readers must close, too: otherwise SQLite would rely on its shared
        # index of the log instead of reading the log again.
        with self._store.readers.all_closed():
            return SqlSession(self._open_synced(again=True, damage_watch=self.damage_watch))

    def open_reader(self) -> SqlSession:
        if self._write_lock.has_failed_sync:
            raise StoreUnavailable("a sync has failed, and the log is not durable yet")
        return SqlSession(
            SqliteDatabase(self._path, read_only=True, damage_watch=self.damage_watch)
        )

    def _open_synced(
        self, *, again: bool = False, damage_watch: DamageWatch | None = None
    ) -> SqliteDatabase:
        """If a sync has failed, ask other processes to close the store, and wait for that."""
        for _ in range(_TRIES):
            try:
                return open_synced(
                    self._path, self._write_lock, again=again, damage_watch=damage_watch
                )
            except OpenElsewhere as error:
                still_open = error
            ask_to_close(self._path)
            self._pause.wait(_BETWEEN_TRIES_S)
        raise still_open

    def _close_connections(self) -> None:
        if self._store is not None and self._write_lock.has_failed_sync:
            _log.warning("a sync failed in another process: reopening the store")
            self._store.close_connections(self._write_lock.leave)
