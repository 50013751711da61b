"""A caller's own transaction on PostgreSQL, through any supported driver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from penstock.domain.errors import InvalidRequest, StoreUnavailable
from penstock.store.announcements import Hints
from penstock.store.commit.session import SECRET
from penstock.store.database import DirectDatabase, Row
from penstock.store.postgres.libpq import ServerError
from penstock.store.postgres.statements import error_for, many_rows, statement
from penstock.store.postgres.wakeups import NO_NODE, payloads
from penstock.store.queries import queries_of

# Counter rows for callers.  Those of the nodes come before them (postgres/store.py: STRIPES).
FIRST_STRIPE = 64
LAST_STRIPE = 254
SHARED_STRIPE = 255  # shared when all others are taken: callers wait for each other

_READ_COMMITTED = ("read committed", "read uncommitted")  # the same in PostgreSQL
_CONFLICTS = ("40001", "40P01")
_FAILED = "25P02"
_NO_TABLE = "42P01"
_FORBIDDEN = "42501"
_MAX_ROWS = 64
_OTHER = "tx is not a connection to the store's own database"

Values = Sequence[str | int | None]


class Driver(Protocol):
    """A library's connection.  Errors are raised as ServerError; parameters are `$1`, `$2`."""

    def refuse_without_transaction(self) -> None:
        """Raises InvalidRequest if the next statement would be a transaction of its own."""
        ...

    def rows(self, text: str, values: Values) -> list[Row]: ...
    def count(self, text: str, values: Values) -> int: ...


class StoreLocation:
    """The store's database, and the schema of our tables in it."""

    def __init__(self, *, database: str, schema: str, secret: str) -> None:
        self.database = database
        self.search_path = f"{schema}, pg_temp"  # the caller's temporary tables come last
        self.secret = secret


class CallerPostgres(DirectDatabase):
    dialect = "postgres"
    is_shared = True
    commits_schema = False
    finds_deadlocks = False
    is_alive = True

    def __init__(self, driver: Driver, location: StoreLocation) -> None:
        self._driver = driver
        self._location = location
        self._queries = queries_of(self.dialect)
        self._were: dict[str, str] = {}

    def rows(self, name: str, params: dict[str, Any] | None = None, **fill: object) -> list[Row]:
        text, values = self._statement(name, params, fill)
        return self._rows(text, values) if text else []

    def run(self, name: str, params: dict[str, Any] | None = None, **fill: object) -> int:
        text, values = self._statement(name, params, fill)
        try:
            return self._driver.count(text, values) if text else 0
        except ServerError as error:
            raise _in_tx(error) from error

    def insert(self, name: str, rows: Sequence[Row], **fill: object) -> list[Row]:
        text = self._queries.text(name, **fill)
        back: list[Row] = []
        start = 0
        while start < len(rows):
            size = min(_MAX_ROWS, 1 << (len(rows) - start).bit_length() - 1)
            values = [value for row in rows[start : start + size] for value in row]
            back += self._rows(many_rows(text, size).decode(), values)
            start += size
        return back

    def update(self, name: str, rows: Sequence[dict[str, Any]]) -> None:
        for row in rows:
            self.post(name, row)

    def script(self, text: str) -> None:
        raise InvalidRequest("a script cannot run inside a caller's transaction")

    def enter(self) -> int:
        self._driver.refuse_without_transaction()
        try:
            self._driver.rows(self.text("callers.savepoint"), [])
        except ServerError as error:
            if error.sqlstate == _FAILED:
                raise InvalidRequest("tx has failed: it can only be rolled back") from error
            raise error_for(error.sqlstate, str(error)) from error
        try:
            self._set()
            return self._find_stripe()
        except BaseException:
            self.rollback()
            raise

    def begin(self, *, durable: bool) -> None:
        """Nothing to do: the caller has begun, and its settings decide on durability."""

    def commit(self) -> None:
        self.post("callers.leave", self._were)
        self.post("callers.release")

    def rollback(self) -> None:
        self.post("callers.roll_back")
        self.post("callers.release")

    def announce(self, hints: Hints) -> None:
        for payload in payloads(NO_NODE, hints):
            self.post("wakeups.notify", {"payload": payload})

    def acquire_write_lock(self, *, wait: bool) -> bool:
        return True

    def release_write_lock(self) -> None:
        pass

    def close(self) -> None:
        pass

    def abandon(self) -> None:
        pass

    def _set(self) -> None:
        found = self.rows("callers.enter", {"search_path": self._location.search_path})
        search_path, enable_seqscan, jit, isolation, database = found[0][:5]
        self._were = {"search_path": search_path, "enable_seqscan": enable_seqscan, "jit": jit}
        if isolation not in _READ_COMMITTED:
            # An older snapshot does not show which message is first in its group, whether a queue
            # is full or removed, and which worker holds a lease.
            raise InvalidRequest(f"tx is {isolation}: sends and acts need READ COMMITTED")
        if database != self._location.database:
            raise InvalidRequest(_OTHER)

    def _find_stripe(self) -> int:
        wanted = {"name": SECRET, "first": FIRST_STRIPE, "last": LAST_STRIPE}
        text, values = self._statement("callers.stripe", wanted, {})
        try:
            [(secret, stripe)] = self._driver.rows(text, values)
        except ServerError as error:
            if error.sqlstate == _NO_TABLE:
                raise InvalidRequest(_OTHER) from error
            raise _in_tx(error) from error
        if secret != self._location.secret:
            raise InvalidRequest(_OTHER)
        return SHARED_STRIPE if stripe is None else int(stripe)

    def _rows(self, text: str, values: Values) -> list[Row]:
        try:
            return self._driver.rows(text, values)
        except ServerError as error:
            raise _in_tx(error) from error

    def _statement(
        self, name: str, params: dict[str, Any] | None, fill: dict[str, object]
    ) -> tuple[str, list[Any]]:
        query = statement(self._queries.text(name, **fill))
        given = params or {}
        return query.text.decode(), [given[name] for name in query.names]


def _in_tx(error: ServerError) -> Exception:
    if error.sqlstate in _CONFLICTS:
        # A retry would fail again: the caller keeps the locks that others wait for.
        return StoreUnavailable(f"roll tx back and run it again: {error}")
    if error.sqlstate == _FORBIDDEN:
        return InvalidRequest(f"tx may not use the store's tables: {error}")
    return error_for(error.sqlstate, str(error))
