"""The file of a SQLite store as one process uses it: its place in line, and its word to the other
processes that use the same file.  How the file is opened, those know who are based on this.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, cast

from penstock.domain.errors import PenstockError
from penstock.ports.store import Session
from penstock.ports.ticket import Ticket
from penstock.store.commit.readers import Readers
from penstock.store.commit.session import SqlSession
from penstock.store.damage.damage_map import damaged_pages
from penstock.store.damage.damage_watch import DamageWatch
from penstock.store.database import Database
from penstock.store.sqlite.wakeups import SqliteWakeups
from penstock.store.sqlite.write_lock import PATIENCE_MS, Turns
from penstock.supervision.health import Health

_MOST_WOKEN = 1_000

IfFirst = Callable[[Session], None]


class Served(Protocol):
    """The store that works here."""

    readers: Readers

    def tell(self, woken: Mapping[int, int]) -> None: ...
    def read(self, what: Callable[[Any], Any]) -> Ticket[Any]: ...
    def write(self, what: Callable[[Any], Any]) -> Ticket[Any]: ...
    def let_go(self, then: Callable[[], None]) -> None: ...


class Watched(Database, Protocol):
    def has_changed(self) -> bool:
        """May anybody have committed since we were asked last?"""
        ...


class FileHome:
    def __init__(
        self, path: Path, *, patience_ms: int = PATIENCE_MS, health: Health | None = None
    ) -> None:
        self._path = path
        self._health = health or Health()
        self._turns = Turns(path, patience_ms=patience_ms, health=self._health)
        self.watch = DamageWatch(lambda: damaged_pages(path))
        self._store: Served | None = None
        self._wakeups: SqliteWakeups | None = None

    def serve(self, store: Served) -> None:
        self._store = store
        self._wakeups = SqliteWakeups(
            self._path,
            heard=store.tell,
            look=self._look,
            let_go=self._let_go,
            health=self._health,
        )

    def announce(self, woken: Mapping[int, int]) -> None:
        if self._wakeups is not None:
            self._wakeups.announce(woken)

    def listen(self) -> None:
        if self._wakeups is not None:
            self._wakeups.listen()

    def is_alone(self) -> bool:
        """Whether no other process has the store open."""
        assert self._store is not None
        return bool(self._store.write(lambda _: self._turns.is_alone()).result())

    def agree(self, number: int, if_first: IfFirst) -> int:
        """The number of the first one who has the store open, for all who come while it is."""
        assert self._store is not None

        def agree(session: Session) -> int:
            if not self._turns.said:
                if_first(session)
            return int(self._turns.agree(str(number)))

        return int(self._store.write(agree).result())

    def close(self) -> None:
        if self._wakeups is not None:
            self._wakeups.close()
        self._turns.close()

    def _let_go(self) -> None:
        """Asked to by another process, whose sync has failed."""

    def _look(self) -> Mapping[int, int]:
        assert self._store is not None
        try:
            return cast(Mapping[int, int], self._store.read(_to_claim).result())
        except PenstockError:
            return {}


def _to_claim(session: SqlSession) -> dict[int, int]:
    """Queues with something to claim; nothing, if the store is as it was at the last look."""
    db = cast(Watched, session.db)
    if not db.has_changed():
        return {}
    return dict(db.rows("queues.with_ready", {"limit": _MOST_WOKEN}))
