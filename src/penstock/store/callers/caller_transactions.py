"""Sends, acts and writes in the caller's own transaction: they take effect if it commits."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from penstock.domain.errors import InvalidRequest, PenstockError, ShuttingDown, StoreUnavailable
from penstock.domain.message.draft import NewMessage
from penstock.domain.message.lease import LeaseAct
from penstock.ports.store import Acted, Sent, Session
from penstock.store.announcements import Hints
from penstock.store.callers.async_bridge import AsyncBridge
from penstock.store.callers.recognition import SQLITE3, async_connection, plain_connection
from penstock.store.callers.sqlite_caller import CallerSqlite3
from penstock.store.callers.sqlite_write_access import CallerWriteLock
from penstock.store.commit.requests import RequestKind, StoreRequest
from penstock.store.commit.session import MAX_COLLISIONS, SqlSession
from penstock.store.database import Collision, Database
from penstock.store.partitions import Partitions
from penstock.store.sqlite.deadlock import refuse_django_deadlock
from penstock.store.verbs.counter_rows import FixedRow

T = TypeVar("T")


class CallerDatabase(Database, Protocol):
    """A database inside the caller's transaction, which only the caller begins and ends.

    A savepoint surrounds our statements: `enter` sets it, `commit` releases it, `rollback` returns
    to it.
    """

    def enter(self) -> int:
        """Set the savepoint; raises InvalidRequest if the transaction is unsuitable.

        Returns the number of the counter row to add to.
        """
        ...

    def announce(self, hints: Hints) -> None:
        """Announce them to other nodes when the caller commits."""
        ...


class CallerTransactions(ABC):
    """Runs requests inside callers' transactions on the store's database."""

    def __init__(self) -> None:
        self._is_closed = False

    @abstractmethod
    def open(self, kind: str, connection: Any, bridge: AsyncBridge | None) -> CallerDatabase:
        """The store's tables through the caller's connection; raises InvalidRequest."""

    @abstractmethod
    def set_up(self, days: Partitions) -> None:
        """Decide how missing days are created."""

    @abstractmethod
    def after_use(self) -> None:
        """Called after each use; may start a checkpoint."""

    def run(self, tx: object, kind: RequestKind, payload: Any) -> Any:
        self._refuse_when_closed()
        return self._run(self.open(*plain_connection(tx), None), kind, payload)

    async def run_async(self, tx: object, kind: RequestKind, payload: Any) -> Any:
        self._refuse_when_closed()
        found, connection = await async_connection(tx)
        bridge = AsyncBridge()
        db = self.open(found, connection, bridge)
        return await bridge.run(lambda: self._run(db, kind, payload))

    @abstractmethod
    def refuse_deadlock(self) -> None:
        """Raises TransactionBusy if a plain write would wait for this thread's transaction."""

    def close(self) -> None:
        self._is_closed = True

    def _run(self, db: CallerDatabase, kind: RequestKind, payload: Any) -> Any:
        for _ in range(MAX_COLLISIONS):
            try:
                return self._run_once(db, StoreRequest(kind, payload))
            except Collision as error:  # only our statements were undone; retry them
                collision = error
        raise StoreUnavailable(
            f"too many collisions with other transactions: {collision}"
        ) from collision

    def _run_once(self, db: CallerDatabase, request: StoreRequest) -> Any:
        counter_rows = FixedRow(db.enter())
        session = SqlSession(db, counter_rows=counter_rows, keeps_time=False)
        self.set_up(session.transaction.partitions)
        [answer] = session.prepare([request], durable=True)
        try:
            db.announce(session.transaction.hints())
        except BaseException:
            db.rollback()
            raise
        session.finish()
        self.after_use()
        return answer

    def _refuse_when_closed(self) -> None:
        if self._is_closed:
            raise ShuttingDown("the store is closed")


class SqliteCallerTransactions(CallerTransactions):
    """`write_lock`: None if the file has checksums, which Python's sqlite3 would not write."""

    def __init__(self, path: Path, *, write_lock: CallerWriteLock | None) -> None:
        super().__init__()
        self._path = path
        self._write_lock = write_lock

    def open(self, kind: str, connection: Any, bridge: AsyncBridge | None) -> CallerDatabase:
        if kind != SQLITE3:
            raise InvalidRequest(f"tx is a {kind}, but the store is SQLite")
        if self._write_lock is None:
            raise InvalidRequest(
                f"{self._path} has checksums on its pages, which Python's sqlite3 would not write:"
                " send in a transaction needs a store that was created with"
                " sqlite:///path?checksums=off, or a file that the application created itself"
            )
        return CallerSqlite3(connection, self._path, self._write_lock)

    def refuse_deadlock(self) -> None:
        if self._write_lock is not None:
            refuse_django_deadlock(self._path)

    def set_up(self, days: Partitions) -> None:
        """Nothing to do: days are created in the caller's transaction, as no other one writes."""

    def after_use(self) -> None:
        if self._write_lock is not None:
            self._write_lock.after_use()


class CallerTransactionVerbs:
    """The verbs of the store port that take a transaction."""

    callers: CallerTransactions

    def refuse_deadlock(self) -> None:
        self.callers.refuse_deadlock()

    def send_in(self, tx: object, new: Sequence[NewMessage]) -> list[Sent | PenstockError]:
        answers: list[Sent | PenstockError] = self.callers.run(tx, RequestKind.SEND, new)
        return answers

    def act_in(self, tx: object, acts: Sequence[LeaseAct]) -> list[Acted | PenstockError]:
        answers: list[Acted | PenstockError] = self.callers.run(tx, RequestKind.ACT, acts)
        return answers

    def write_in(self, tx: object, what: Callable[[Session], T]) -> T:
        answer: T = self.callers.run(tx, RequestKind.WRITE, what)
        return answer

    async def send_in_async(
        self, tx: object, new: Sequence[NewMessage]
    ) -> list[Sent | PenstockError]:
        answers: list[Sent | PenstockError] = await self.callers.run_async(
            tx, RequestKind.SEND, new
        )
        return answers

    async def act_in_async(
        self, tx: object, acts: Sequence[LeaseAct]
    ) -> list[Acted | PenstockError]:
        answers: list[Acted | PenstockError] = await self.callers.run_async(
            tx, RequestKind.ACT, acts
        )
        return answers

    async def write_in_async(self, tx: object, what: Callable[[Session], T]) -> T:
        answer: T = await self.callers.run_async(tx, RequestKind.WRITE, what)
        return answer
