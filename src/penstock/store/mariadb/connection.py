"""A connection to MariaDB that runs named queries.

Statements without a result are sent with the next query, in one packet, and their errors are raised
there or at the commit.  A query of several statements returns the rows of its first one; the others
change the rows that it has locked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from penstock.domain.errors import PenstockError, StoreRefused, StoreUnavailable, TooLarge
from penstock.store.database import Collision, Row
from penstock.store.mariadb.link import MariadbError, MariadbLink, Result
from penstock.store.mariadb.statements import (
    Found,
    QueryTemplate,
    error_for,
    insert_texts,
    statements,
)
from penstock.store.mariadb.url import MariadbUrl
from penstock.store.queries import Queries

OLDEST_SERVER = (10, 11)
MIN_PACKET = 16 * 1024 * 1024
_PATIENCE_MS = 600_000  # for migrations and other long steps
_PATIENT_IDLE_S = 60  # … between two of their statements
_MAX_WAITING_BYTES = 1024 * 1024  # of statements that wait to be sent
_PACKET_HEAD = 1024  # bytes of a packet that are not for statements, generously
_NOTHING: Found = {}

# Whatever the server's default is.  NO_BACKSLASH_ESCAPES: a quote is the only character of a text
# that is written twice.  SIMULTANEOUS_ASSIGNMENT: an UPDATE computes all values from the old row.
_MODES = (
    "STRICT_ALL_TABLES",
    "NO_BACKSLASH_ESCAPES",
    "PIPES_AS_CONCAT",
    "ANSI_QUOTES",
    "SIMULTANEOUS_ASSIGNMENT",
    "NO_ENGINE_SUBSTITUTION",
    "ERROR_FOR_DIVISION_BY_ZERO",
)


class Reply:
    """The result of a statement, now or later."""

    __slots__ = ("_db", "result")

    def __init__(self, db: MariadbDatabase) -> None:
        self._db = db
        self.result: Result | None = None

    def rows(self) -> list[Row]:
        return self._db.wait_for(self).rows

    def count(self) -> int:
        return self._db.wait_for(self).count


class MariadbDatabase:
    dialect = "mariadb"
    is_shared = True
    commits_schema = True
    finds_deadlocks = False

    def __init__(self, url: MariadbUrl, *, read_only: bool = False, guarded: bool = True) -> None:
        """`guarded`: transactions can be held off by the removal of a queue."""
        self._queries = Queries(self.dialect)
        self._url = url
        self._begin = b"START TRANSACTION"
        if read_only:
            self._begin = b"START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"
        elif guarded:
            self._begin += b";" + self._queries.text("session.guard").encode()
        self._begin_count = self._begin.count(b";") + 1
        self._waiting: list[tuple[bytes, Reply | None]] = []
        self._waiting_bytes = 0
        self._error: Exception | None = None  # until the rollback
        self._is_open = False
        self._is_patient = False
        self._link = MariadbLink(url)
        try:
            self._link.limit_waits(url.timeout_ms + 500)
            self._set_up(read_only)
        except BaseException:
            self._link.end()
            raise

    def text(self, name: str, **fill: object) -> str:
        return self._queries.text(name, **fill)

    def ask(self, name: str, params: dict[str, Any] | None = None, **fill: object) -> Reply:
        todo = statements(self._queries.text(name, **fill))
        reply = Reply(self)
        given = params or {}
        if len(todo) == 1:
            self._send(todo[0].text(given, _NOTHING), reply)
        elif todo:
            self._change_found(todo, given, reply)
        else:  # nothing to do in this dialect
            reply.result = Result()
        return reply

    def rows(self, name: str, params: dict[str, Any] | None = None, **fill: object) -> list[Row]:
        return self.ask(name, params, **fill).rows()

    def post(self, name: str, params: dict[str, Any] | None = None, **fill: object) -> None:
        todo = statements(self._queries.text(name, **fill))
        if len(todo) == 1:
            self._send(todo[0].text(params or {}, _NOTHING), None)
        elif todo:
            self.ask(name, params, **fill)

    def run(self, name: str, params: dict[str, Any] | None = None, **fill: object) -> int:
        return self.ask(name, params, **fill).count()

    def insert(self, name: str, rows: Sequence[Row], **fill: object) -> list[Row]:
        text = self._queries.text(name, **fill)
        if "RETURNING" not in text:
            for part in insert_texts(text, rows):
                self._send(part, None)
            return []
        replies = [Reply(self) for _ in insert_texts(text, rows)]
        for part, reply in zip(insert_texts(text, rows), replies, strict=True):
            self._send(part, reply)
        return [row for reply in replies for row in reply.rows()]

    def update(self, name: str, rows: Sequence[dict[str, Any]]) -> None:
        for row in rows:
            self.post(name, row)

    def script(self, text: str) -> None:
        """MariaDB commits each statement that changes the schema."""
        for statement in statements(_without_comments(text)):
            reply = Reply(self)
            self._send(statement.text({}, _NOTHING), reply)
            reply.count()

    def acquire_write_lock(self, *, wait: bool) -> bool:
        """Nothing to acquire: transactions write concurrently."""
        return True

    def release_write_lock(self) -> None:
        pass

    def begin(self, *, durable: bool) -> None:
        """Each commit is on the disk when it returns: MariaDB has no setting per transaction."""
        if self._error is not None:  # of a statement outside of a transaction
            self.rollback()
        self._is_open = True
        self._send(self._begin, None, count=self._begin_count)

    def back_off(self, times: int) -> None:
        """Pause without locks, so that the other transaction gets them first."""
        self.rows("session.back_off", {"seconds": str(min(0.002 * 4**times, 1))})

    def raise_time_limits(self) -> None:
        """Statements of this transaction may take minutes."""
        self._is_patient = True
        self._link.limit_waits(_PATIENCE_MS)
        self._set_limits(_PATIENCE_MS, _PATIENCE_MS // 1000, _PATIENT_IDLE_S)

    def commit(self) -> None:
        reply = Reply(self)
        self._send(b"COMMIT", reply)
        reply.count()
        self._end()

    def rollback(self) -> None:
        is_begun = self._is_open and not (self._waiting and self._waiting[0][0] == self._begin)
        self._waiting, self._waiting_bytes, self._error = [], 0, None
        if is_begun and not self._link.is_lost:
            reply = Reply(self)
            self._send(b"ROLLBACK", reply)
            try:
                reply.count()
            except Exception as error:
                self._link.end()
                self._end()
                raise StoreUnavailable(f"MariaDB: {error}") from error
        self._end()

    @property
    def is_alive(self) -> bool:
        return self._link.is_alive

    def close(self) -> None:
        self._link.end()

    def abandon(self) -> None:
        self.close()

    def wait_for(self, reply: Reply) -> Result:
        if reply.result is None:
            self._flush()
        if reply.result is None:
            raise self._error or StoreUnavailable("MariaDB: the transaction has failed")
        return reply.result

    def _change_found(
        self, todo: Sequence[QueryTemplate], given: dict[str, Any], reply: Reply
    ) -> None:
        """Run a SELECT, and the changes of the rows that it has found and locked."""
        place = [statement.is_select for statement in todo].index(True)
        for statement in todo[:place]:
            self._send(statement.text(given, _NOTHING), None)
        self._send(todo[place].text(given, _NOTHING), reply)
        result = self.wait_for(reply)
        if result.rows:
            columns = zip(*result.rows, strict=True)
            found: dict[str, Sequence[object]] = dict(zip(result.names, columns, strict=True))
            for statement in todo[place + 1 :]:
                self._send(statement.text(given, found), None)
            count = sum(not name.startswith("found_") for name in result.names)
            if count < len(result.names):
                result.rows = [row[:count] for row in result.rows]

    def _send(self, text: bytes, reply: Reply | None, *, count: int = 1) -> None:
        if self._error is not None:  # the transaction is lost, so nothing may run outside of it
            raise self._error
        size = len(text) + 1  # they are separated
        if self._waiting_bytes + size > self._most_bytes:
            if size > self._most_bytes:
                raise TooLarge(
                    f"a statement of {size} bytes is larger than MariaDB's max_allowed_packet"
                    f" ({self._packet})"
                )
            self._flush()
        self._waiting.append((text, reply))
        self._waiting += [(b"", None)] * (count - 1)
        self._waiting_bytes += size
        if self._waiting_bytes > _MAX_WAITING_BYTES:
            self._flush()

    def _flush(self) -> None:
        """Send what waits, and read all results."""
        if self._error is not None:
            raise self._error
        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        if not waiting:
            return
        results: list[Result] = []
        try:
            self._link.run_until_error(b";".join([text for text, _ in waiting if text]), results)
        except MariadbError as error:
            self._error = error_for(error.number, str(error))
            self._error.__cause__ = error
        for (_, reply), result in zip(waiting, results, strict=False):
            if reply is not None:
                reply.result = result
        if self._error is not None:
            raise self._error

    def _set_up(self, read_only: bool) -> None:
        level = "REPEATABLE READ" if read_only else "READ COMMITTED"
        modes = ",".join(_MODES)
        set_up = f"""SELECT VERSION(), @@max_allowed_packet;
            SET NAMES utf8mb4 COLLATE utf8mb4_nopad_bin;
            SET SESSION sql_mode = '{modes}', autocommit = 1, time_zone = '+00:00',
              join_cache_level = 0, in_predicate_conversion_threshold = 0,
              group_concat_max_len = 67108864, net_read_timeout = 5, net_write_timeout = 5;
            SET SESSION TRANSACTION ISOLATION LEVEL {level}"""
        results: list[Result] = []
        try:
            self._link.run_until_error(set_up.encode(), results)
        except MariadbError as error:
            if results:
                refuse_old(str(results[0].rows[0][0]))
            raise error_for(error.number, str(error)) from error
        [(version, packet)] = results[0].rows
        refuse_old(version)
        if packet < MIN_PACKET:
            raise StoreRefused(
                f"MariaDB's max_allowed_packet is {packet}; it must be at least {MIN_PACKET}"
            )
        self._packet: int = packet
        self._most_bytes = packet - _PACKET_HEAD
        self._set_usual_limits(is_read_only=read_only)
        self._is_read_only = read_only

    def _set_usual_limits(self, *, is_read_only: bool) -> None:
        url = self._url
        # A read blocks no other transaction, so it may compute for a while between queries.
        idle_s = math.ceil(url.timeout_ms / 1000) if is_read_only else url.idle_timeout_s
        self._set_limits(url.timeout_ms, url.lock_timeout_s, idle_s)

    def _set_limits(self, statement_ms: int, lock_s: int, idle_s: int) -> None:
        text = (
            f"SET SESSION max_statement_time = {statement_ms / 1000},"
            f" innodb_lock_wait_timeout = {lock_s}, lock_wait_timeout = {lock_s},"
            f" idle_transaction_timeout = {idle_s}"
        )
        self._send(text.encode(), None)
        self._flush()

    def _end(self) -> None:
        """Raises nothing: the transaction has ended, and a commit must not seem to have failed."""
        self._is_open = False
        if self._is_patient:
            self._is_patient = False
            if not self._link.is_lost:
                self._link.limit_waits(self._url.timeout_ms + 500)
                try:
                    self._set_usual_limits(is_read_only=self._is_read_only)
                except (PenstockError, Collision):
                    self._link.end()  # so that the session is replaced


def refuse_old(version: str) -> None:
    """Raises StoreRefused for MySQL, and for a MariaDB that is no longer maintained."""
    if "MariaDB" not in version:
        raise StoreRefused(
            f"the server is MySQL {version}; a mysql:// store needs MariaDB 10.11 or later"
        )
    number = version.split("-")[0].split(".")
    if tuple(map(int, number[:2])) < OLDEST_SERVER:
        raise StoreRefused(f"MariaDB {version} is too old; 10.11 or later is needed")


def _without_comments(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.startswith("--"))
