"""Ends sessions of the PostgreSQL server whose client no longer responds.

A session keeps its row locks until its transaction ends.  PostgreSQL itself ends a transaction that
is idle (see libpq.py), but not one whose client has sent only part of its statements: a process
that is stopped while sending leaves a session that is `active` and waits for its client.  Two
classes end such sessions with `pg_terminate_backend`:

- `LostSessions`: sessions of connections that we closed, whose server process may still run.  The
  next connection ends them.
- `SessionWatch`: sessions of other nodes that wait for their client in several checks in a row.
  Any node ends them.  They have the same database, user and `application_name`.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable
from typing import Any

import msgspec

from penstock.domain.errors import PenstockError
from penstock.store.database import Database
from penstock.supervision.health import NodeHealth
from penstock.supervision.threads import SupervisedThread

CHECKS = 5  # checks in a row in which a session waits in the same statement before it is ended
_CLOSING_S = 5.0
_ENDED = "ended %d PostgreSQL sessions whose client had stopped in mid-transaction"

_log = logging.getLogger("penstock.store")


class ServerSession(msgspec.Struct, frozen=True):
    """A server process, identified by id and start time, because process ids are reused."""

    pid: int
    started_at: int  # microseconds


class LostSessions:
    """Shared by all connections of a store, from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions: set[ServerSession] = set()

    def add(self, session: ServerSession) -> None:
        with self._lock:
            self._sessions.add(session)

    def all(self) -> list[ServerSession]:
        with self._lock:
            return list(self._sessions)

    def remove(self, sessions: list[ServerSession]) -> None:
        with self._lock:
            self._sessions.difference_update(sessions)


class SessionWatch:
    """A thread that ends stalled sessions, on a connection of its own."""

    def __init__(
        self, open_database: Callable[[], Database], *, every_ms: int, health: NodeHealth
    ) -> None:
        self._open_database = open_database
        self._every_s = every_ms / 1000
        self._stalled = StalledSessions()
        self._is_closing = threading.Event()
        self._thread = SupervisedThread("penstock-sessions", self._run, health=health)
        self._thread.start()

    def close(self) -> None:
        self._is_closing.set()
        self._thread.join(_CLOSING_S)

    def _run(self) -> None:
        # A store that is open only for a moment, in a script, needs no connection for this.
        while not self._is_closing.wait(self._every_s):
            try:
                self._serve()
            except PenstockError as error:  # writers and readers log the outage itself
                _log.debug("cannot end stalled sessions: %s", error)

    def _serve(self) -> None:
        """Look once per interval on one connection, until it breaks or we close."""
        db = self._open_database()
        try:
            self._look(db)
            while not self._is_closing.wait(self._every_s):
                self._look(db)
        finally:
            db.abandon()

    def _look(self, db: Database) -> None:
        db.begin(durable=False)
        try:
            ended = self._stalled.end(db)
        finally:
            db.rollback()
        if ended:
            _log.warning(_ENDED, ended)


class StalledSessions:
    """Sessions seen by earlier checks."""

    def __init__(self) -> None:
        self._seen: dict[tuple[Any, ...], int] = {}

    def end(self, db: Database) -> int:
        """Look once, and end sessions that were seen often enough; returns how many."""
        rows = db.rows("sessions.waiting_for_client")
        # The row includes the time of the last change, so a client that has continued starts at 1.
        self._seen = {row: self._seen.get(row, 0) + 1 for row in rows}
        stalled = [ServerSession(row[0], row[1]) for row, n in self._seen.items() if n >= CHECKS]
        return end_sessions(db, stalled)


def end_sessions(db: Database, sessions: list[ServerSession]) -> int:
    if not sessions:
        return 0
    return len(db.rows("sessions.end", {"sessions": as_json(sessions)}))


def as_json(sessions: list[ServerSession]) -> str:
    return json.dumps([[session.pid, session.started_at] for session in sessions])
