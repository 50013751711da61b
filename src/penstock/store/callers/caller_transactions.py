"""Send, act and write in the caller's own transaction: it counts exactly if the caller commits."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from penstock.domain.errors import InvalidRequest, PenstockError, ShuttingDown, StoreUnavailable
from penstock.domain.message.draft import NewMessage
from penstock.domain.message.lease import LeaseAct
from penstock.ports.store import Acted, Sent, Session
from penstock.store.callers.async_bridge import Bridge
from penstock.store.callers.caller_database import CallerDatabase
from penstock.store.callers.recognition import SQLITE3, async_connection, plain_connection
from penstock.store.callers.sqlite_caller import CallerSqlite3
from penstock.store.callers.sqlite_write_access import CallersDoor
from penstock.store.commit.session import Kind, Request, SqlSession
from penstock.store.database import Collision
from penstock.store.partitions import Partitions
from penstock.store.sqlite.deadlock import refuse_django_deadlock

T = TypeVar("T")

MOST_COLLISIONS = 5


class Callers(ABC):
    """The transactions of those who use this store in their own."""

    def __init__(self) -> None:
        self._is_closed = False

    @abstractmethod
    def open(self, kind: str, connection: Any, bridge: Bridge | None) -> CallerDatabase:
        """The store's tables through that connection; raises InvalidRequest."""

    @abstractmethod
    def set_up(self, days: Partitions) -> None:
        """How days are made that are not there yet."""

    @abstractmethod
    def used(self) -> None:
        """Once more."""

    def run(self, tx: object, kind: Kind, payload: Any) -> Any:
        self._refuse_when_closed()
        return self._run(self.open(*plain_connection(tx), None), kind, payload)

    async def run_async(self, tx: object, kind: Kind, payload: Any) -> Any:
        self._refuse_when_closed()
        found, connection = await async_connection(tx)
        bridge = Bridge()
        db = self.open(found, connection, bridge)
        return await bridge.run(lambda: self._run(db, kind, payload))

    @abstractmethod
    def refuse_deadlock(self) -> None:
        """Raises TransactionBusy if a write of our own would wait for the calling thread."""

    def close(self) -> None:
        self._is_closed = True

    def _run(self, db: CallerDatabase, kind: Kind, payload: Any) -> Any:
        for _ in range(MOST_COLLISIONS):
            try:
                return self._run_once(db, Request(kind, payload))
            except Collision as error:  # ours alone is undone, and may work the next time
                collision = error
        raise StoreUnavailable(f"too many at once: {collision}") from collision

    def _run_once(self, db: CallerDatabase, request: Request) -> Any:
        stripe = db.enter()
        session = SqlSession(db, stripe=stripe, keeps_time=False)
        self.set_up(session.books.partitions)
        [answer] = session.prepare([request], durable=True)
        try:
            db.tell(session.books.woken)
        except BaseException:
            db.rollback()
            raise
        session.finish()
        self.used()
        return answer

    def _refuse_when_closed(self) -> None:
        if self._is_closed:
            raise ShuttingDown("the store is closed")


class SqliteCallers(Callers):
    """`door`: None if the file has checksums, which Python's sqlite3 would not write."""

    def __init__(self, path: Path, *, door: CallersDoor | None) -> None:
        super().__init__()
        self._path = path
        self._door = door

    def open(self, kind: str, connection: Any, bridge: Bridge | None) -> CallerDatabase:
        if kind != SQLITE3:
            raise InvalidRequest(f"tx is a {kind}, but the store is SQLite")
        if self._door is None:
            raise InvalidRequest(
                f"{self._path} has checksums on its pages, which Python's sqlite3 would not write:"
                " send in a transaction needs a store that was made with"
                " sqlite:///path?checksums=off, or a file that the application has made itself"
            )
        return CallerSqlite3(connection, self._path, self._door)

    def refuse_deadlock(self) -> None:
        if self._door is not None:
            refuse_django_deadlock(self._path)

    def set_up(self, days: Partitions) -> None:
        """In the caller's transaction, as everything else: there is only one at a time."""

    def used(self) -> None:
        if self._door is not None:
            self._door.used()


class InCallersTransactions:
    """The verbs of the store port that take a transaction."""

    callers: Callers

    def refuse_deadlock(self) -> None:
        self.callers.refuse_deadlock()

    def send_in(self, tx: object, new: Sequence[NewMessage]) -> list[Sent | PenstockError]:
        answers: list[Sent | PenstockError] = self.callers.run(tx, Kind.SEND, new)
        return answers

    def act_in(self, tx: object, acts: Sequence[LeaseAct]) -> list[Acted | PenstockError]:
        answers: list[Acted | PenstockError] = self.callers.run(tx, Kind.ACT, acts)
        return answers

    def write_in(self, tx: object, what: Callable[[Session], T]) -> T:
        answer: T = self.callers.run(tx, Kind.WRITE, what)
        return answer

    async def send_in_async(
        self, tx: object, new: Sequence[NewMessage]
    ) -> list[Sent | PenstockError]:
        answers: list[Sent | PenstockError] = await self.callers.run_async(tx, Kind.SEND, new)
        return answers

    async def act_in_async(
        self, tx: object, acts: Sequence[LeaseAct]
    ) -> list[Acted | PenstockError]:
        answers: list[Acted | PenstockError] = await self.callers.run_async(tx, Kind.ACT, acts)
        return answers

    async def write_in_async(self, tx: object, what: Callable[[Session], T]) -> T:
        answer: T = await self.callers.run_async(tx, Kind.WRITE, what)
        return answer
