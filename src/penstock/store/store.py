"""The store port over a database: group commit for writes, read-only sessions for reads."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, TypeVar

from penstock.domain.errors import PenstockError, StoreRefused
from penstock.domain.message.draft import NewMessage
from penstock.domain.message.lease import LeaseAct
from penstock.domain.store.damage import Damage
from penstock.files.local_folder import make_folder
from penstock.ports.store import Acted, Claim, Claimed, Sent, Session
from penstock.ports.ticket import InviteClaims, Ticket
from penstock.store.announcements import Hints
from penstock.store.callers.caller_transactions import CallerTransactionVerbs
from penstock.store.commit.group_commit import GroupCommit
from penstock.store.commit.outage import StoreOutage
from penstock.store.commit.readers import Readers
from penstock.store.commit.requests import RequestKind, StoreRequest
from penstock.store.commit.session import CLOCK_MARK_STEP_MS, SECRET, SqlSession
from penstock.store.commit.watchdog import RequestSource, Watchdog
from penstock.store.damage.damage_watch import DamageWatch
from penstock.store.database import Database, NotADatabase
from penstock.store.maintenance import migrate as migrations
from penstock.store.meta_names import CLOCK_MARK
from penstock.store.sqlite.file_access import IfFirst
from penstock.store.sqlite.shared_connection import is_plain
from penstock.store.sqlite.shared_store_file import PlainStoreFile
from penstock.store.sqlite.store_file import SqliteStoreFile
from penstock.store.sqlite.write_lock import PATIENCE_MS
from penstock.store.verbs.transaction_state import EndingWatch
from penstock.supervision.health import NodeHealth

T = TypeVar("T")
H = TypeVar("H")

REQUEST_TIMEOUT_MS = 20_000
_STUCK_FACTOR = 2  # times the longest wait of a request

_log = logging.getLogger("penstock.store")


class Coordination(Protocol):
    """Coordination with other processes that use the same store."""

    def listen(self) -> None: ...
    def agree(self, number: int, if_first: IfFirst) -> int: ...
    def is_alone(self) -> bool: ...
    def close(self) -> None: ...


class HotVerbs(RequestSource, Protocol):
    """Where sends, claims and acts go."""

    def submit(self, request: StoreRequest) -> None: ...
    def submit_all(self, requests: Sequence[StoreRequest]) -> None: ...


class SqlStore(CallerTransactionVerbs):
    def __init__(
        self,
        backend: str,
        *,
        open_writer: Callable[[int], SqlSession],
        open_reader: Callable[[], SqlSession],
        lanes: int = 1,
        announce: Callable[[Hints], None] | None = None,
        coordination: Coordination | None = None,
        health: NodeHealth | None = None,
        request_timeout_ms: int = REQUEST_TIMEOUT_MS,
        patience_ms: int = 0,
    ) -> None:
        """`patience_ms`: how long a writer may wait for the write lock."""
        self.backend = backend
        self.health = health or NodeHealth()
        self.damage_watch: DamageWatch | None = None
        self._coordination = coordination
        self.announce = announce  # to other nodes
        self._listeners: list[Callable[[Mapping[int, int]], None]] = []
        self._ending_listeners: list[Callable[[Sequence[str]], None]] = []
        self._ending_watch = EndingWatch()
        outage = StoreOutage()
        stuck_ms = _STUCK_FACTOR * max(request_timeout_ms, patience_ms)
        self.readers = Readers(open_reader, outage, health=self.health, stuck_ms=stuck_ms)
        self._commits = GroupCommit(
            lambda lane: self._add_watch(open_writer(lane)),
            lanes=lanes,
            on_commit=self._on_commit,
            outage=outage,
            health=self.health,
            stuck_ms=stuck_ms,
        )
        self._hot: HotVerbs = self._commits
        self._watchdog = Watchdog(
            [self._commits, self.readers], timeout_ms=request_timeout_ms, health=self.health
        )
        try:
            self.secret, self.clock_mark = self.write(_facts).result()
        except BaseException:
            self._commits.close()
            self.readers.close()
            self._watchdog.close()
            raise

    def forward_to(self, writer: HotVerbs) -> None:
        """Let another process carry out sends, claims and acts."""
        self._hot = writer
        self._watchdog.watch(writer)

    def listen(self, callback: Callable[[Mapping[int, int]], None]) -> None:
        self._listeners.append(callback)
        if self._coordination is not None:
            self._coordination.listen()

    def invite_claims(self, invite: InviteClaims) -> None:
        self._commits.invite_claims = invite

    def listen_for_endings(self, callback: Callable[[Sequence[str]], None]) -> None:
        self._ending_listeners.append(callback)
        if self._coordination is not None:
            self._coordination.listen()

    def watch_endings(self, is_on: bool) -> None:
        self._ending_watch.is_on = is_on

    def pass_on(self, hints: Hints) -> None:
        """Inform the listeners of this process."""
        if hints.woken:
            for listener in self._listeners:
                _call(listener, hints.woken)
        if self._ending_listeners and (hints.ended or hints.ended_here):
            ended = [*hints.ended, *hints.ended_here]
            for ending_listener in self._ending_listeners:
                _call(ending_listener, ended)

    def send(self, new: Sequence[NewMessage]) -> Ticket[list[Sent | PenstockError]]:
        return self._submit(RequestKind.SEND, new)

    def claim(self, wanted: Claim) -> Ticket[Claimed]:
        return self._submit(RequestKind.CLAIM, wanted)

    def claim_all(self, wanted: Sequence[Claim]) -> list[Ticket[Claimed]]:
        requests = [StoreRequest(RequestKind.CLAIM, claim) for claim in wanted]
        self._hot.submit_all(requests)
        return [request.ticket for request in requests]

    def act(self, acts: Sequence[LeaseAct]) -> Ticket[list[Acted | PenstockError]]:
        return self._submit(RequestKind.ACT, acts)

    def write(self, what: Callable[[Session], T]) -> Ticket[T]:
        request = StoreRequest(RequestKind.WRITE, what)
        self._commits.submit(request)
        return request.ticket

    def read(self, what: Callable[[Session], T]) -> Ticket[T]:
        return self.readers.submit(what).ticket

    def limit_waits(self, timeout_ms: int) -> None:
        """Reduce the timeout of requests, including those that are waiting."""
        self._watchdog.timeout_ms = min(self._watchdog.timeout_ms, timeout_ms)

    def close(self) -> None:
        self._commits.close()
        self.readers.close()
        self.callers.close()
        if self._coordination is not None:
            self._coordination.close()
        self._watchdog.close()

    def close_connections(self, then: Callable[[], None]) -> None:
        """Close all connections and call `then`; afterwards they reopen when needed."""

        def close_sessions() -> None:
            self.readers.close_sessions()
            then()

        self._commits.close_connections(close_sessions)

    def damage(self) -> Damage | None:
        return None if self.damage_watch is None else self.damage_watch.damage()

    def agree(self, number: int, if_first: IfFirst = lambda _: None) -> int:
        """Agree on one number: the first process sets it, for all that have the store open.

        `if_first`: called by that process in the same transaction.
        """
        return number if self._coordination is None else self._coordination.agree(number, if_first)

    def is_alone(self) -> bool:
        """Whether no other process has the store open, as far as this one can see."""
        return self._coordination is None or self._coordination.is_alone()

    def _add_watch(self, session: SqlSession) -> SqlSession:
        session.transaction.watch = self._ending_watch
        return session

    def _on_commit(self, hints: Hints) -> None:
        self.pass_on(hints)
        if self.announce is None:
            return
        try:
            self.announce(hints)
        except Exception:  # the messages are committed: their senders must be answered
            _log.exception("other processes could not be woken")

    def _submit(self, kind: RequestKind, payload: Any) -> Ticket[Any]:
        request = StoreRequest(kind, payload)
        self._hot.submit(request)
        return request.ticket


def _call(listener: Callable[[H], None], hint: H) -> None:
    try:
        listener(hint)
    except Exception:  # a lost wake-up only costs time; an exception would stop the writer
        _log.exception("a listener of wake-ups failed")


def migrate_sqlite(
    path: Path, *, now: int, checksums: bool = True, patience_ms: int = PATIENCE_MS
) -> list[migrations.Migration]:
    store_file = _open_store_file(
        path, checksums=checksums, patience_ms=patience_ms, health=NodeHealth()
    )
    try:
        return store_file.migrate(now=now)
    finally:
        store_file.close()


def open_sqlite(
    path: Path,
    *,
    now: int = 0,
    checksums: bool = True,
    patience_ms: int = PATIENCE_MS,
    request_timeout_ms: int = REQUEST_TIMEOUT_MS,
) -> SqlStore:
    """Open or create a store and apply migrations.  Other processes may do the same.

    A file without checksums can be shared with an application that sends in its transactions.
    """
    health = NodeHealth()
    store_file = _open_store_file(path, checksums=checksums, patience_ms=patience_ms, health=health)
    try:
        store_file.migrate(now=now)
        store = SqlStore(
            "sqlite",
            open_writer=lambda _: store_file.open_writer(),
            open_reader=store_file.open_reader,
            coordination=store_file,
            health=health,
            request_timeout_ms=request_timeout_ms,
            patience_ms=patience_ms,
        )
    except NotADatabase as error:
        store_file.close()
        raise StoreRefused(f"{path} is not a SQLite database: {error}") from error
    except BaseException:
        store_file.close()
        raise
    store.callers = store_file.callers
    store.damage_watch = store_file.damage_watch
    store_file.serve(store)
    return store


def _open_store_file(
    path: Path, *, checksums: bool, patience_ms: int, health: NodeHealth
) -> SqliteStoreFile | PlainStoreFile:
    make_folder(path.parent)
    is_plain_one = _is_plain(path, checksums)
    _make_file(path)
    if is_plain_one:
        return PlainStoreFile(path, patience_ms=patience_ms, health=health)
    return SqliteStoreFile(path, patience_ms=patience_ms, health=health)


def _is_plain(path: Path, checksums: bool) -> bool:
    found = is_plain(path, new_ones=not checksums)
    if not checksums and not found:
        raise StoreRefused(f"{path} was created with checksums; only a new file can be without")
    return found


def _make_file(path: Path) -> None:
    """Accessible to its owner only: it holds bodies and the secret of receipts and SQS signatures.

    SQLite creates `-wal` and `-shm` with the mode of the database.
    """
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))


def _facts(session: Session) -> tuple[bytes, int]:
    """The secret that signs receipts, created at the first start, and the latest instant seen."""
    db: Database = session.db  # type: ignore[attr-defined]
    [(made,)] = db.rows("meta.new_secret")
    db.run("meta.set_if_absent", {"name": SECRET, "value": made})
    [(secret,)] = db.rows("meta.get", {"name": SECRET})
    marks = db.rows("meta.get", {"name": CLOCK_MARK})
    # The mark is written at intervals, so time continues after any instant that may have followed.
    latest = int(marks[0][0]) + CLOCK_MARK_STEP_MS if marks else 0
    return bytes.fromhex(secret), latest
