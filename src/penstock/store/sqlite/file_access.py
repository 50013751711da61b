"""One process's access to the file of a SQLite store: its write lock, and its wake-ups to and from
other processes that use the same file.  Subclasses know how to open the file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, cast

from penstock.domain.errors import PenstockError
from penstock.ports.store import Session
from penstock.ports.ticket import Ticket
from penstock.store.announcements import Hints
from penstock.store.commit.readers import Readers
from penstock.store.commit.session import SqlSession
from penstock.store.damage.damage_map import damaged_pages
from penstock.store.damage.damage_watch import DamageWatch
from penstock.store.database import Database
from penstock.store.sqlite.wakeups import SqliteWakeups
from penstock.store.sqlite.write_lock import PATIENCE_MS, WriteLock
from penstock.supervision.health import NodeHealth

_MAX_WOKEN = 1_000

IfFirst = Callable[[Session], None]


class ServedStore(Protocol):
    """The store that uses this file."""

    readers: Readers
    announce: Callable[[Hints], None] | None  # to other processes

    def pass_on(self, hints: Hints) -> None: ...
    def read(self, what: Callable[[Any], Any]) -> Ticket[Any]: ...
    def write(self, what: Callable[[Any], Any]) -> Ticket[Any]: ...
    def close_connections(self, then: Callable[[], None]) -> None: ...


class ChangeAware(Database, Protocol):
    def has_changed(self) -> bool:
        """Whether another connection may have committed since the last call."""
        ...


class StoreFileAccess:
    def __init__(
        self, path: Path, *, patience_ms: int = PATIENCE_MS, health: NodeHealth | None = None
    ) -> None:
        self._path = path
        self._health = health or NodeHealth()
        self._write_lock = WriteLock(path, patience_ms=patience_ms, health=self._health)
        self.damage_watch = DamageWatch(lambda: damaged_pages(path))
        self._store: ServedStore | None = None
        self._wakeups: SqliteWakeups | None = None

    def serve(self, store: ServedStore) -> None:
        self._store = store
        self._wakeups = SqliteWakeups(
            self._path,
            on_wakeup=store.pass_on,
            find_ready=self._find_ready,
            on_close_request=self._close_connections,
            health=self._health,
        )
        store.announce = self._wakeups.announce

    def listen(self) -> None:
        if self._wakeups is not None:
            self._wakeups.listen()

    def is_alone(self) -> bool:
        """Whether no other process has the store open."""
        assert self._store is not None
        return bool(self._store.write(lambda _: self._write_lock.is_alone()).result())

    def agree(self, number: int, if_first: IfFirst) -> int:
        """Agree on one number: the first process sets it, for all that have the store open."""
        assert self._store is not None

        def agree(session: Session) -> int:
            if not self._write_lock.agreed:
                if_first(session)
            return int(self._write_lock.agree(str(number)))

        return int(self._store.write(agree).result())

    def close(self) -> None:
        if self._wakeups is not None:
            self._wakeups.close()
        self._write_lock.close()

    def _close_connections(self) -> None:
        """Called when a process whose sync has failed asks the others to close the file."""

    def _find_ready(self) -> Mapping[int, int]:
        assert self._store is not None
        try:
            return cast(Mapping[int, int], self._store.read(_claimable).result())
        except PenstockError:
            return {}


def _claimable(session: SqlSession) -> dict[int, int]:
    """Queues with something to claim; {} if nothing was committed since the last call."""
    db = cast(ChangeAware, session.db)
    if not db.has_changed():
        return {}
    return dict(db.rows("queues.with_ready", {"limit": _MAX_WOKEN}))
