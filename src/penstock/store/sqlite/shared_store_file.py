"""The file of a SQLite store that an application has open as well, as one process uses it.

Whoever works through this store takes turns with the others.  The application's own connections do
not: they belong to the application.
"""

from __future__ import annotations

from pathlib import Path

from penstock.store.callers.caller_transactions import SqliteCallers
from penstock.store.callers.sqlite_write_access import CallersDoor
from penstock.store.commit.session import SqlSession
from penstock.store.damage.damage_watch import DamageWatch
from penstock.store.maintenance import migrate as migrations
from penstock.store.sqlite.file_access import FileHome
from penstock.store.sqlite.shared_connection import LogMoves, PlainSqliteDatabase, open_settled
from penstock.store.sqlite.write_lock import PATIENCE_MS
from penstock.supervision.health import Health


class PlainHome(FileHome):
    def __init__(
        self, path: Path, *, patience_ms: int = PATIENCE_MS, health: Health | None = None
    ) -> None:
        super().__init__(path, patience_ms=patience_ms, health=health)
        self._patience_ms = patience_ms
        self._moves = LogMoves()
        self._door = CallersDoor(path, self._moves, patience_ms=patience_ms, health=self._health)
        self.callers = SqliteCallers(path, door=self._door)

    def migrate(self, *, now: int) -> list[migrations.Migration]:
        """Several processes may be at it: in its turn each finds what the one before has done."""
        db = self._open_settled()
        try:
            return migrations.apply(db, now=now)
        finally:
            db.close()

    def open_writer(self) -> SqlSession:
        return SqlSession(self._open_settled(watch=self.watch))

    def open_reader(self) -> SqlSession:
        return SqlSession(
            PlainSqliteDatabase(
                self._path,
                self._moves,
                read_only=True,
                patience_ms=self._patience_ms,
                watch=self.watch,
            )
        )

    def close(self) -> None:
        super().close()
        self._door.close()

    def _open_settled(self, *, watch: DamageWatch | None = None) -> PlainSqliteDatabase:
        return open_settled(
            self._path, self._moves, self._turns, patience_ms=self._patience_ms, watch=watch
        )
