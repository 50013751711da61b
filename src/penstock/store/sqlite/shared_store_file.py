"""The file of a SQLite store that an application has open as well.

Stores use the write lock between processes.  The application's own connections do not.
"""

from __future__ import annotations

from pathlib import Path

from penstock.store.callers.caller_transactions import SqliteCallerTransactions
from penstock.store.callers.sqlite_write_access import CallerWriteLock
from penstock.store.commit.session import SqlSession
from penstock.store.damage.damage_watch import DamageWatch
from penstock.store.maintenance import migrate as migrations
from penstock.store.sqlite.file_access import StoreFileAccess
from penstock.store.sqlite.shared_connection import LogMoveTimer, PlainSqliteDatabase, open_synced
from penstock.store.sqlite.write_lock import PATIENCE_MS
from penstock.supervision.health import NodeHealth


class PlainStoreFile(StoreFileAccess):
    def __init__(
        self, path: Path, *, patience_ms: int = PATIENCE_MS, health: NodeHealth | None = None
    ) -> None:
        super().__init__(path, patience_ms=patience_ms, health=health)
        self._patience_ms = patience_ms
        self._moves = LogMoveTimer()
        self._caller_lock = CallerWriteLock(
            path, self._moves, patience_ms=patience_ms, health=self._health
        )
        self.callers = SqliteCallerTransactions(path, write_lock=self._caller_lock)

    def migrate(self, *, now: int) -> list[migrations.Migration]:
        """Safe in several processes at once: each skips the migrations that another has applied."""
        db = self._open_synced()
        try:
            return migrations.apply(db, now=now)
        finally:
            db.close()

    def open_writer(self) -> SqlSession:
        return SqlSession(self._open_synced(damage_watch=self.damage_watch))

    def open_reader(self) -> SqlSession:
        return SqlSession(
            PlainSqliteDatabase(
                self._path,
                self._moves,
                read_only=True,
                patience_ms=self._patience_ms,
                damage_watch=self.damage_watch,
            )
        )

    def close(self) -> None:
        super().close()
        self._caller_lock.close()

    def _open_synced(self, *, damage_watch: DamageWatch | None = None) -> PlainSqliteDatabase:
        return open_synced(
            self._path,
            self._moves,
            self._write_lock,
            patience_ms=self._patience_ms,
            damage_watch=damage_watch,
        )
