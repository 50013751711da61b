"""PostgreSQL as a database of named queries.

Statements that nobody waits for (`insert` without RETURNING, `update`, `post`) travel with the next
one that somebody does, and their errors show there or at the commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

import msgspec

from penstock.domain.errors import StoreUnavailable
from penstock.store.database import Collision, Row
from penstock.store.postgres.libpq import Link, Reply, ServerError
from penstock.store.postgres.sessions import ServerSession, as_json
from penstock.store.postgres.statements import Params, encoded, meaning, parts, statement
from penstock.store.postgres.url import PostgresUrl, connect, server_settings
from penstock.store.queries import Queries

_PATIENCE_MS = 600_000  # for the few things that may take long
_PATIENT_IDLE_MS = 60_000  # … but not because we compute for long between two statements
_NOT_PREPARED = ("26000", "42P05")  # a proxy gave us another server connection


class PostgresDatabase:
    dialect = "postgres"
    is_shared = True
    finds_deadlocks = False

    def __init__(self, url: PostgresUrl, *, read_only: bool = False) -> None:
        self._queries = Queries(self.dialect)
        self._url = url
        self._is_read_only = read_only
        self._is_open = False
        self._session: ServerSession | None = None  # None: a proxy may give us any
        # Longer than the server's own time-out, so that its word on the matter comes first.
        patience_ms = url.timeout_ms + 500
        self._usual_patience_ms = patience_ms
        connection = connect(url, writes=not read_only)
        self._link = Link(connection, patience_ms=patience_ms, prepares=url.prepares)
        try:
            self._set_up(connection.info.backend_pid)
        except BaseException:
            self._link.close()
            raise

    def text(self, name: str, **fill: object) -> str:
        return self._queries.text(name, **fill)

    def ask(self, name: str, params: dict[str, Any] | None = None, **fill: object) -> Found:
        return Found(self, self._send(name, params, fill))

    def rows(self, name: str, params: dict[str, Any] | None = None, **fill: object) -> list[Row]:
        return self.ask(name, params, **fill).rows()

    def post(self, name: str, params: dict[str, Any] | None = None, **fill: object) -> None:
        self._send(name, params, fill)

    def run(self, name: str, params: dict[str, Any] | None = None, **fill: object) -> int:
        return self.ask(name, params, **fill).count()

    def insert(self, name: str, rows: Sequence[Row], **fill: object) -> list[Row]:
        text = self._queries.text(name, **fill)
        values = [encoded(row) for row in rows]
        replies = [self._link.send(*part) for part in parts(text, values)]
        if "RETURNING" not in text:
            return []
        return [row for reply in replies for row in Found(self, reply).rows()]

    def update(self, name: str, rows: Sequence[dict[str, Any]]) -> None:
        # Measured: as fast as one UPDATE … FROM a list of values, which needs all types spelt out.
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

    def take_turn(self, *, wait: bool) -> bool:
        """Everybody writes at the same time."""
        return True

    def give_turn_back(self) -> None:
        pass

    def begin(self, *, durable: bool) -> None:
        """Everything is set for this transaction only: a proxy may give each another connection."""
        self._link.make_room()
        self._is_open = True
        timeouts = {
            "timeout_ms": str(self._url.timeout_ms),
            "lock_ms": str(self._url.lock_timeout_ms),
            "idle_ms": str(self._url.idle_timeout_ms),
        }
        if self._is_read_only:
            # It keeps nobody waiting: whoever computes for a while between two queries may.
            timeouts["idle_ms"] = timeouts["timeout_ms"]
            self._send("session.begin_read_only", None, {})
            self._send("session.set", timeouts | {"synchronous_commit": "off"}, {})
            return
        self._send("session.begin", None, {})
        waits = {"synchronous_commit": "on" if durable else "off"}
        self._send("session.set", timeouts | waits, {})

    def step_back(self, times: int) -> None:
        """Whoever is let go first has to wake up: without a pause we are there again before it.

        A row that a victim of a deadlock gives back goes to the first who asks, and not to the
        first who waits.
        """
        self.begin(durable=False)
        self.post("session.step_back", {"seconds": str(min(0.05 * 2**times, 1))})
        self.rollback()

    def be_patient(self) -> None:
        """Until the end of this transaction: statements may take minutes."""
        self._link.patience_ms = _PATIENCE_MS
        patience = {"timeout_ms": str(_PATIENCE_MS), "idle_ms": str(_PATIENT_IDLE_MS)}
        self.post("session.set_patience", patience)

    def commit(self) -> None:
        told = self._link.send(b"COMMIT")
        trouble = self._link.sync()
        if trouble is not None:
            self.fail(trouble)
        self._end()
        if told.tag() != b"COMMIT":  # a failed transaction is rolled back without an error
            raise StoreUnavailable("PostgreSQL has not committed the transaction")

    def rollback(self) -> None:
        if self._link.is_lost:  # nobody is there to be told
            self._end()
        if self._is_open:
            for _ in range(2):  # after an error the server may skip the first one
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
            # The server may not hear of it; its session would keep locks and a connection.
            self._url.lost.add(self._session)
        self._link.close()

    def abandon(self) -> None:
        self.close()

    def fail(self, error: ServerError) -> NoReturn:
        """Raise what the server's word means for us."""
        if error.sqlstate in _NOT_PREPARED:
            self._link.prepares = self._url.prepares = False
            raise Collision(str(error)) from error
        raise meaning(error.sqlstate, str(error)) from error

    def _set_up(self, pid: int) -> None:
        """Before the first transaction: settings for the connection, and sessions lost before it.

        Not prepared: a proxy may give the next transaction another server connection.
        """
        prepares, self._link.prepares = self._link.prepares, False
        lost = self._url.lost.all()
        wanted = msgspec.json.encode(server_settings(self._url)).decode()
        self._send("sessions.watch_host", {"wanted": wanted}, {})
        own = self._send("sessions.own", None, {})
        trouble = self._link.sync()
        if trouble is not None:
            self.fail(trouble)
        if lost:  # those that we may not end do not keep us from our work
            self._send("sessions.end", {"sessions": as_json(lost)}, {})
            self._link.sync()
            self._url.lost.remove(lost)
        self._link.prepares = prepares
        [(real_pid, started_at)] = Found(self, own).rows()
        if real_pid == pid:  # a proxy tells a number of its own
            self._session = ServerSession(real_pid, started_at)

    def _send(
        self, name: str, params: dict[str, Any] | None, fill: dict[str, object]
    ) -> Reply | None:
        said = statement(self._queries.text(name, **fill))
        if not said.text:  # this dialect has nothing to do here
            return None
        values: Params | None = None
        if said.names:
            given = params or {}
            values = encoded([given[name] for name in said.names])
        return self._link.send(said.text, values)

    def _end(self) -> None:
        self._is_open = False
        self._link.patience_ms = self._usual_patience_ms


class Found:
    """What a query will have found; reading it waits for everything sent before it."""

    def __init__(self, db: PostgresDatabase, reply: Reply | None) -> None:
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
