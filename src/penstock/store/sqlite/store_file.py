"""The file of a SQLite store with checksums, as one process uses it."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

from penstock.domain.errors import StoreUnavailable
from penstock.store.callers.caller_transactions import SqliteCallers
from penstock.store.commit.session import SqlSession
from penstock.store.damage.damage_watch import DamageWatch
from penstock.store.maintenance import migrate as migrations
from penstock.store.sqlite.connection import SqliteDatabase, StillOpen, open_settled
from penstock.store.sqlite.file_access import FileHome
from penstock.store.sqlite.wakeups import ask_to_let_go
from penstock.store.sqlite.write_lock import PATIENCE_MS
from penstock.supervision.health import Health

_TRIES = 20
_BETWEEN_TRIES_S = 0.05  # others close within milliseconds, unless they are stopped

_log = logging.getLogger("penstock.store")


class SqliteHome(FileHome):
    def __init__(
        self, path: Path, *, patience_ms: int = PATIENCE_MS, health: Health | None = None
    ) -> None:
        super().__init__(path, patience_ms=patience_ms, health=health)
        self.callers = SqliteCallers(path, door=None)  # who refuse: it has checksums
        self._pause = threading.Event()  # never set

    def migrate(self, *, now: int) -> list[migrations.Migration]:
        """Several processes may be at it: in its turn each finds what the one before has done."""
        db = self._open_settled()
        try:
            applied = migrations.apply(db, now=now)
        except BaseException:
            db.abandon()
            raise
        db.close()
        return applied

    def open_writer(self) -> SqlSession:
        if self._store is None:
            return SqlSession(self._open_settled(watch=self.watch))
        # After a storage error readers must let go as well, or SQLite would not look at the
        # log anew but trust what it remembers of it.
        with self._store.readers.kept_out():
            return SqlSession(self._open_settled(again=True, watch=self.watch))

    def open_reader(self) -> SqlSession:
        if self._turns.is_in_doubt:
            raise StoreUnavailable("a sync has failed, and the log is not settled yet")
        return SqlSession(SqliteDatabase(self._path, read_only=True, watch=self.watch))

    def _open_settled(
        self, *, again: bool = False, watch: DamageWatch | None = None
    ) -> SqliteDatabase:
        """If a sync has failed, everybody must let go of the store first, and is asked to."""
        for _ in range(_TRIES):
            try:
                return open_settled(self._path, self._turns, again=again, watch=watch)
            except StillOpen as error:
                still_open = error
            ask_to_let_go(self._path)
            self._pause.wait(_BETWEEN_TRIES_S)
        raise still_open

    def _let_go(self) -> None:
        if self._store is not None and self._turns.is_in_doubt:
            _log.warning("a sync failed in another process: the store is opened anew")
            self._store.let_go(self._turns.leave)
