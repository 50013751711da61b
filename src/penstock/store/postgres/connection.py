"""A connection to PostgreSQL that runs named queries.

Statements without a result (`insert` without RETURNING, `update`, `post`) are sent with the next
query, and their errors are raised there or at the commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

import msgspec

from penstock.domain.errors import StoreUnavailable
from penstock.store.database import Collision, Row
from penstock.store.postgres.libpq import Link, ServerError, StatementReply
from penstock.store.postgres.sessions import ServerSession, as_json
from penstock.store.postgres.statements import (
    MIN_BY_COLUMNS,
    ColumnInsert,
    Params,
    encode,
    error_for,
    many_rows,
    parts,
    statement,
)
from penstock.store.postgres.url import PostgresUrl, ServerRole, connect, server_settings
from penstock.store.queries import Queries

_PATIENCE_MS = 600_000  # for migrations and other long steps
_PATIENT_IDLE_MS = 60_000  # … between two of their statements
_MAX_COLUMN_INSERTS = 100
_NOT_PREPARED = ("26000", "42P05")  # a proxy gave us another server connection


class PostgresDatabase:
    dialect = "postgres"
    is_shared = True
    commits_schema = False
    finds_deadlocks = False

    def __init__(
        self, url: PostgresUrl, *, read_only: bool = False, role: ServerRole | None = None
    ) -> None:
        self._queries = Queries(self.dialect)
        self._url = url
        self._is_read_only = read_only
        self._is_open = False
        self._column_inserts: dict[str, ColumnInsert] = {}
        self._session: ServerSession | None = None  # None: unknown behind a proxy
        # Longer than the server's own timeout, so that the server reports it first.
        patience_ms = url.timeout_ms + 500
        self._usual_patience_ms = patience_ms
        usual_role = ServerRole.PRIMARY if read_only else ServerRole.WRITABLE
        connection = connect(url, role=role or usual_role)
        self._link = Link(connection, patience_ms=patience_ms, prepares=url.prepares)
        try:
            self._set_up(connection.info.backend_pid)
        except BaseException:
            self._link.close()
            raise

    def text(self, name: str, **fill: object) -> str:
        return self._queries.text(name, **fill)

    def ask(self, name: str, params: dict[str, Any] | None = None, **fill: object) -> PendingRows:
        return PendingRows(self, self._send(name, params, fill))

    def rows(self, name: str, params: dict[str, Any] | None = None, **fill: object) -> list[Row]:
        return self.ask(name, params, **fill).rows()

    def post(self, name: str, params: dict[str, Any] | None = None, **fill: object) -> None:
        self._send(name, params, fill)

    def run(self, name: str, params: dict[str, Any] | None = None, **fill: object) -> int:
        return self.ask(name, params, **fill).count()

    def insert(self, name: str, rows: Sequence[Row], **fill: object) -> list[Row]:
        text = self._queries.text(name, **fill)
        statements = self._by_columns(text, rows) if len(rows) >= MIN_BY_COLUMNS else None
        if statements is None:
            statements = parts(text, [encode(row) for row in rows])
        replies = [self._link.send(*statement) for statement in statements]
        if "RETURNING" not in text:
            return []
        return [row for reply in replies for row in PendingRows(self, reply).rows()]

    def _by_columns(self, text: str, rows: Sequence[Row]) -> Iterable[tuple[bytes, Params]] | None:
        insert = self._column_inserts.get(text)
        if insert is None:
            if len(self._column_inserts) >= _MAX_COLUMN_INSERTS:  # many name days that are gone
                self._column_inserts.clear()
            try:
                types = self._link.parameter_types(many_rows(text, 1))
            except ServerError as error:
                self.fail(error)
            select = self._queries.text("inserts.by_columns")
            insert = self._column_inserts[text] = ColumnInsert(text, types, select=select)
        return insert.parts(rows)

    def update(self, name: str, rows: Sequence[dict[str, Any]]) -> None:
        # Measured: as fast as one UPDATE … FROM (VALUES …), which needs all types written out.
        for row in rows:
            self.post(name, row)

    def script(self, text: str) -> None:
        trouble = self._link.script(text.encode())
        if trouble is not None:
            self.fail(trouble)

    def copy(self, name: str, data: Iterable[bytes], **fill: object) -> None:
        """Rows in the text format of COPY."""
        trouble = self._link.script(self._queries.text(name, **fill).encode(), data)
        if trouble is not None:
            self.fail(trouble)

    def run_alone(self, name: str, params: Sequence[dict[str, Any]]) -> None:
        """Run a statement for each of the parameters, in one transaction of nothing else."""
        for values in params:
            self._send(name, values, {})
        trouble = self._link.sync()
        if trouble is not None:
            self.fail(trouble)

    def acquire_write_lock(self, *, wait: bool) -> bool:
        """Nothing to acquire: transactions write concurrently."""
        return True

    def release_write_lock(self) -> None:
        pass

    def begin(self, *, durable: bool) -> None:
        """Behind a proxy, sets everything per transaction: the next one may use another server
        connection.
        """
        self._link.make_room()
        self._is_open = True
        self._send("session.begin_read_only" if self._is_read_only else "session.begin", None, {})
        is_synced = durable and not self._is_read_only
        if self._session is None:
            self._set(is_synced=is_synced, is_local=True)
        elif not is_synced and not self._is_read_only:
            self._send("session.set_unsynced", None, {})

    def _set(self, *, is_synced: bool, is_local: bool) -> None:
        # A read blocks no other transaction, so it may compute for a while between queries.
        idle_ms = self._url.timeout_ms if self._is_read_only else self._url.idle_timeout_ms
        settings = {
            "synchronous_commit": "on" if is_synced else "off",
            "timeout_ms": str(self._url.timeout_ms),
            "lock_ms": str(self._url.lock_timeout_ms),
            "idle_ms": str(idle_ms),
            "is_local": int(is_local),
        }
        self._send("session.set", settings, {})

    def back_off(self, times: int) -> None:
        """Pause, so that the waiting transaction has time to wake up and get the lock.

        A row lock that the victim of a deadlock releases goes to the next session that asks for it,
        which without a pause would be ours again, and not to the one that waits.
        """
        self.begin(durable=False)
        self.post("session.back_off", {"seconds": str(min(0.05 * 2**times, 1))})
        self.rollback()

    def raise_time_limits(self) -> None:
        """Statements of this transaction may take minutes."""
        self._link.patience_ms = _PATIENCE_MS
        patience = {"timeout_ms": str(_PATIENCE_MS), "idle_ms": str(_PATIENT_IDLE_MS)}
        self.post("session.set_patience", patience)

    def commit(self) -> None:
        reply = self._link.send(b"COMMIT")
        trouble = self._link.sync()
        if trouble is not None:
            self.fail(trouble)
        self._end()
        if reply.tag() != b"COMMIT":  # a failed transaction is rolled back without an error
            raise StoreUnavailable("PostgreSQL has not committed the transaction")

    def rollback(self) -> None:
        if self._link.is_lost:  # the server rolls back by itself
            self._end()
        if self._is_open:
            for _ in range(2):  # after an error, the server may skip the first ROLLBACK
                self._link.send(b"ROLLBACK")
                trouble = self._link.sync()
                if not self._link.is_in_transaction:
                    break
            self._end()
            if trouble is not None and self._link.is_in_transaction:
                raise StoreUnavailable(str(trouble)) from trouble

    @property
    def is_alive(self) -> bool:
        return self._link.is_alive

    def fileno(self) -> int:
        return self._link.fileno()

    def notifications(self) -> list[str]:
        return self._link.notifications()

    def close(self) -> None:
        if self._session is not None:
            # The server may not notice; its session would keep locks and a connection.
            self._url.lost.add(self._session)
        self._link.close()

    def abandon(self) -> None:
        self.close()

    def fail(self, error: ServerError) -> NoReturn:
        """Raise our error for one of the server's."""
        if error.sqlstate in _NOT_PREPARED:
            self._link.prepares = self._url.prepares = False
            raise Collision(str(error)) from error
        raise error_for(error.sqlstate, str(error)) from error

    def _set_up(self, pid: int) -> None:
        """Before the first transaction: set up the connection, and end sessions lost earlier.

        Without prepared statements: a proxy may use another server connection for the next one.
        """
        prepares, self._link.prepares = self._link.prepares, False
        lost = self._url.lost.all()
        wanted = msgspec.json.encode(server_settings(self._url)).decode()
        self._send("sessions.watch_host", {"wanted": wanted}, {})
        own = self._send("sessions.own", None, {})
        trouble = self._link.sync()
        if trouble is not None:
            self.fail(trouble)
        if lost:  # errors are ignored: we may lack the right to end them
            self._send("sessions.end", {"sessions": as_json(lost)}, {})
            self._link.sync()
            self._url.lost.remove(lost)
        self._link.prepares = prepares
        [(real_pid, started_at)] = PendingRows(self, own).rows()
        if real_pid == pid:  # a proxy reports a number of its own
            self._session = ServerSession(real_pid, started_at)
            self._set(is_synced=not self._is_read_only, is_local=False)
            trouble = self._link.sync()
            if trouble is not None:
                self.fail(trouble)

    def _send(
        self, name: str, params: dict[str, Any] | None, fill: dict[str, object]
    ) -> StatementReply | None:
        query = statement(self._queries.text(name, **fill))
        if not query.text:  # nothing to do in this dialect
            return None
        values: Params | None = None
        if query.names:
            given = params or {}
            values = encode([given[name] for name in query.names])
        return self._link.send(query.text, values)

    def _end(self) -> None:
        self._is_open = False
        self._link.patience_ms = self._usual_patience_ms


class PendingRows:
    """The rows of a query that was sent; reading them waits for everything sent before it."""

    def __init__(self, db: PostgresDatabase, reply: StatementReply | None) -> None:
        self._db = db
        self._reply = reply

    def rows(self) -> list[Row]:
        try:
            return [] if self._reply is None else self._reply.rows()
        except ServerError as error:
            self._db.fail(error)

    def count(self) -> int:
        try:
            return 0 if self._reply is None else self._reply.count()
        except ServerError as error:
            self._db.fail(error)
