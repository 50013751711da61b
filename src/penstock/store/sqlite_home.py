"""The file of a SQLite store as one process uses it: its place in line, its connections, its word
to the other processes that use the same file.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, cast

from penstock.domain.errors import PenstockError, StoreUnavailable
from penstock.ports.ticket import Ticket
from penstock.store import migrations
from penstock.store.own_tx import SqliteCallers
from penstock.store.readers import Readers
from penstock.store.session import SqlSession
from penstock.store.sqlite import SqliteDatabase, StillOpen, open_settled
from penstock.store.sqlite_wakeups import SqliteWakeups, ask_to_let_go
from penstock.store.turns import PATIENCE_MS, Turns

_TRIES = 20
_BETWEEN_TRIES_S = 0.05  # others close within milliseconds, unless they are stopped
_MOST_WOKEN = 1_000

_log = logging.getLogger("penstock.store")


class Served(Protocol):
    """The store that works here."""

    readers: Readers

    def tell(self, woken: Mapping[int, int]) -> None: ...
    def read(self, what: Callable[[Any], Any]) -> Ticket[Any]: ...
    def write(self, what: Callable[[Any], Any]) -> Ticket[Any]: ...
    def let_go(self, then: Callable[[], None]) -> None: ...


class SqliteHome:
    def __init__(self, path: Path, *, patience_ms: int = PATIENCE_MS) -> None:
        self._path = path
        self._turns = Turns(path, patience_ms=patience_ms)
        self.callers = SqliteCallers(path, moves=None)  # who refuse: it has checksums
        self._store: Served | None = None
        self._wakeups: SqliteWakeups | None = None
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

    def serve(self, store: Served) -> None:
        self._store = store
        self._wakeups = SqliteWakeups(
            self._path, heard=store.tell, look=self._look, let_go=self._let_go
        )

    def open_writer(self) -> SqlSession:
        if self._store is None:
            return SqlSession(self._open_settled())
        # After a storage error readers must let go as well, or SQLite would not look at the
        # log anew but trust what it remembers of it.
        with self._store.readers.kept_out():
            return SqlSession(self._open_settled(again=True))

    def open_reader(self) -> SqlSession:
        if self._turns.is_in_doubt:
            raise StoreUnavailable("a sync has failed, and the log is not settled yet")
        return SqlSession(SqliteDatabase(self._path, read_only=True))

    def announce(self, woken: Mapping[int, int]) -> None:
        if self._wakeups is not None:
            self._wakeups.announce(woken)

    def listen(self) -> None:
        if self._wakeups is not None:
            self._wakeups.listen()

    def agree(self, number: int) -> int:
        """The number of the first one who has the store open, for all who come while it is."""
        assert self._store is not None
        answer = self._store.write(lambda _: self._turns.agree(str(number))).result()
        return int(answer)

    def close(self) -> None:
        if self._wakeups is not None:
            self._wakeups.close()
        self._turns.close()

    def _open_settled(self, *, again: bool = False) -> SqliteDatabase:
        """If a sync has failed, everybody must let go of the store first, and is asked to."""
        for _ in range(_TRIES):
            try:
                return open_settled(self._path, self._turns, again=again)
            except StillOpen as error:
                still_open = error
            ask_to_let_go(self._path)
            self._pause.wait(_BETWEEN_TRIES_S)
        raise still_open

    def _let_go(self) -> None:
        if self._store is not None and self._turns.is_in_doubt:
            _log.warning("a sync failed in another process: the store is opened anew")
            self._store.let_go(self._turns.leave)

    def _look(self) -> Mapping[int, int]:
        assert self._store is not None
        try:
            return cast(Mapping[int, int], self._store.read(_to_claim).result())
        except PenstockError:
            return {}


def _to_claim(session: SqlSession) -> dict[int, int]:
    """Queues with something to claim; nothing, if the store is as it was at the last look."""
    db = cast(SqliteDatabase, session.db)
    if not db.has_changed():
        return {}
    return dict(db.rows("queues.with_ready", {"limit": _MOST_WOKEN}))
