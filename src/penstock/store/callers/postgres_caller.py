"""A caller's own transaction on PostgreSQL, through whatever driver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from penstock.domain.errors import InvalidRequest, StoreUnavailable
from penstock.store.commit.session import SECRET
from penstock.store.database import Found, Row
from penstock.store.postgres.libpq import ServerError
from penstock.store.postgres.statements import many_rows, meaning, statement
from penstock.store.postgres.wakeups import NOBODY, payloads
from penstock.store.queries import queries_of

# Rows of counters for callers.  Those of the nodes come before them (postgres_store.STRIPES).
FIRST_STRIPE = 64
LAST_STRIPE = 254
CROWDED_STRIPE = 255  # more callers at one time than there are: they take turns

_READ_COMMITTED = ("read committed", "read uncommitted")  # to PostgreSQL they are the same
_CROSSWISE = ("40001", "40P01")
_FAILED = "25P02"
_NO_TABLE = "42P01"
_FORBIDDEN = "42501"
_MOST_ROWS = 64
_OTHER = "tx is not a connection to the store's own database"

Values = Sequence[str | int | None]


class Driver(Protocol):
    """A connection of some library.  Its errors come as ServerError, parameters are `$1`, `$2`."""

    def refuse_without_transaction(self) -> None:
        """Raises InvalidRequest if the next statement would be a transaction of its own."""
        ...

    def rows(self, text: str, values: Values) -> list[Row]: ...
    def count(self, text: str, values: Values) -> int: ...


class Home:
    """Which database it has to be, and where in it our tables are."""

    def __init__(self, *, database: str, schema: str, secret: str) -> None:
        self.database = database
        self.search_path = f"{schema}, pg_temp"  # the caller's temporary tables come last
        self.secret = secret


class CallerPostgres:
    dialect = "postgres"
    is_shared = True
    finds_deadlocks = False
    is_alive = True

    def __init__(self, driver: Driver, home: Home) -> None:
        self._driver = driver
        self._home = home
        self._queries = queries_of(self.dialect)
        self._were: dict[str, str] = {}

    def text(self, name: str, **fill: object) -> str:
        return self._queries.text(name, **fill)

    def rows(self, name: str, params: dict[str, Any] | None = None, **fill: object) -> list[Row]:
        text, values = self._said(name, params, fill)
        return self._rows(text, values) if text else []

    def ask(self, name: str, params: dict[str, Any] | None = None, **fill: object) -> Found:
        return Found(self.rows(name, params, **fill))

    def post(self, name: str, params: dict[str, Any] | None = None, **fill: object) -> None:
        self.rows(name, params, **fill)

    def run(self, name: str, params: dict[str, Any] | None = None, **fill: object) -> int:
        text, values = self._said(name, params, fill)
        try:
            return self._driver.count(text, values) if text else 0
        except ServerError as error:
            raise _in_tx(error) from error

    def insert(self, name: str, rows: Sequence[Row], **fill: object) -> list[Row]:
        text = self._queries.text(name, **fill)
        back: list[Row] = []
        start = 0
        while start < len(rows):
            size = min(_MOST_ROWS, 1 << (len(rows) - start).bit_length() - 1)
            values = [value for row in rows[start : start + size] for value in row]
            back += self._rows(many_rows(text, size).decode(), values)
            start += size
        return back

    def update(self, name: str, rows: Sequence[dict[str, Any]]) -> None:
        for row in rows:
            self.post(name, row)

    def script(self, text: str) -> None:
        raise InvalidRequest("a script has a transaction of its own")

    def enter(self) -> int:
        self._driver.refuse_without_transaction()
        try:
            self._driver.rows(self.text("callers.savepoint"), [])
        except ServerError as error:
            if error.sqlstate == _FAILED:
                raise InvalidRequest("tx has failed already: it can only be rolled back") from error
            raise meaning(error.sqlstate, str(error)) from error
        try:
            self._set()
            return self._find_stripe()
        except BaseException:
            self.rollback()
            raise

    def begin(self, *, durable: bool) -> None:
        """It has begun.  Whether it is durable, the caller's own settings decide."""

    def commit(self) -> None:
        self.post("callers.leave", self._were)
        self.post("callers.release")

    def rollback(self) -> None:
        self.post("callers.roll_back")
        self.post("callers.release")

    def tell(self, woken: Mapping[int, int]) -> None:
        for payload in payloads(NOBODY, list(woken.items())):
            self.post("wakeups.tell", {"payload": payload})

    def take_turn(self, *, wait: bool) -> bool:
        return True

    def give_turn_back(self) -> None:
        pass

    def step_back(self, times: int) -> None:
        """The server has let the others go first already: it was its word that we collide."""

    def be_patient(self) -> None:
        """How long a statement may take, the caller decides."""

    def close(self) -> None:
        pass

    def abandon(self) -> None:
        pass

    def _set(self) -> None:
        found = self.rows("callers.enter", {"search_path": self._home.search_path})
        search_path, enable_seqscan, jit, isolation, database = found[0][:5]
        self._were = {"search_path": search_path, "enable_seqscan": enable_seqscan, "jit": jit}
        if isolation not in _READ_COMMITTED:
            # With an older view of the tables nobody can tell who is first of a group, whether a
            # queue is full or still there, and whose a lease is.
            raise InvalidRequest(f"tx is {isolation}: sends and acts need READ COMMITTED")
        if database != self._home.database:
            raise InvalidRequest(_OTHER)

    def _find_stripe(self) -> int:
        wanted = {"name": SECRET, "first": FIRST_STRIPE, "last": LAST_STRIPE}
        text, values = self._said("callers.stripe", wanted, {})
        try:
            [(secret, stripe)] = self._driver.rows(text, values)
        except ServerError as error:
            if error.sqlstate == _NO_TABLE:
                raise InvalidRequest(_OTHER) from error
            raise _in_tx(error) from error
        if secret != self._home.secret:
            raise InvalidRequest(_OTHER)
        return CROWDED_STRIPE if stripe is None else int(stripe)

    def _rows(self, text: str, values: Values) -> list[Row]:
        try:
            return self._driver.rows(text, values)
        except ServerError as error:
            raise _in_tx(error) from error

    def _said(
        self, name: str, params: dict[str, Any] | None, fill: dict[str, object]
    ) -> tuple[str, list[Any]]:
        said = statement(self._queries.text(name, **fill))
        given = params or {}
        return said.text.decode(), [given[name] for name in said.names]


def _in_tx(error: ServerError) -> Exception:
    if error.sqlstate in _CROSSWISE:
        # To try again would be in vain: the caller holds on to what others wait for.
        return StoreUnavailable(f"roll back and begin anew: {error}")
    if error.sqlstate == _FORBIDDEN:
        return InvalidRequest(f"tx may not use the store's tables: {error}")
    return meaning(error.sqlstate, str(error))
