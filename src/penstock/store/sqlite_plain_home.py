"""The file of a SQLite store that an application has open as well, as one process uses it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from penstock.store import migrations
from penstock.store.own_tx import SqliteCallers
from penstock.store.session import SqlSession
from penstock.store.sqlite_plain import LogMoves, PlainSqliteDatabase, open_settled


class PlainHome:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._moves = LogMoves()
        self.callers = SqliteCallers(path, moves=self._moves)

    def migrate(self, *, now: int) -> list[migrations.Migration]:
        db = open_settled(self._path, self._moves)
        try:
            return migrations.apply(db, now=now)
        finally:
            db.close()

    def serve(self, store: object) -> None:
        """Nothing has to be told to it."""

    def open_writer(self) -> SqlSession:
        return SqlSession(open_settled(self._path, self._moves))

    def open_reader(self) -> SqlSession:
        return SqlSession(PlainSqliteDatabase(self._path, self._moves, read_only=True))

    def announce(self, woken: Mapping[int, int]) -> None:
        pass

    def listen(self) -> None:
        pass

    def agree(self, number: int) -> int:
        return number

    def close(self) -> None:
        pass
