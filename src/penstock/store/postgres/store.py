"""A store on PostgreSQL 13 or later, shared by any number of nodes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from penstock.domain.errors import StoreRefused, StoreUnavailable
from penstock.store.callers.postgres_caller import StoreLocation
from penstock.store.callers.postgres_transactions import PostgresCallerTransactions
from penstock.store.commit.session import SqlSession
from penstock.store.database import Collision, Database
from penstock.store.dead_rows.dead_rows import DeadRows
from penstock.store.maintenance import migrate as migrations
from penstock.store.maintenance.migrate import Migration
from penstock.store.postgres.connection import PostgresDatabase
from penstock.store.postgres.dead_row_watch import DeadRowWatch
from penstock.store.postgres.sessions import SessionWatch
from penstock.store.postgres.url import PostgresUrl, parse
from penstock.store.postgres.wakeups import PostgresWakeups
from penstock.store.queries import Queries
from penstock.store.store import REQUEST_TIMEOUT_MS, SqlStore
from penstock.store.verbs.counter_rows import MovingRows
from penstock.supervision.health import NodeHealth

T = TypeVar("T")

OLDEST_SERVER = 130_000
STRIPES = 64  # connections are spread over as many rows of a queue's counters

# Without these, an acknowledged message may be lost, or a torn page go unnoticed.
_NEEDED = {
    "fsync": "on",
    "full_page_writes": "on",
    "data_sync_retry": "off",
    "server_encoding": "UTF8",
}


class PostgresStore(SqlStore):
    def __init__(self, url: PostgresUrl, *, lanes: int, request_timeout_ms: int) -> None:
        health = NodeHealth()
        self.dead_rows = DeadRows()
        self.wakeups = PostgresWakeups(
            lambda: PostgresDatabase(url), on_wakeup=self.pass_on, health=health
        )
        try:
            super().__init__(
                "postgres",
                open_writer=lambda _: self._share(_open_writer(url)),
                open_reader=lambda: self._share(SqlSession(PostgresDatabase(url, read_only=True))),
                lanes=lanes,
                announce=self.wakeups.announce,
                health=health,
                request_timeout_ms=request_timeout_ms,
            )
            self.callers = PostgresCallerTransactions(self._location(), self._make_day)
        except BaseException:
            self.wakeups.close()
            raise
        self._watch = SessionWatch(
            lambda: PostgresDatabase(url, read_only=True), every_ms=url.watch_ms, health=health
        )
        self._dead_row_watch = DeadRowWatch(self, self.dead_rows, health=health)

    def close(self) -> None:
        self._dead_row_watch.close()
        self._watch.close()
        super().close()
        self.wakeups.close()

    def _share(self, session: SqlSession) -> SqlSession:
        session.transaction.dead_rows = self.dead_rows
        return session

    def _location(self) -> StoreLocation:
        [(database, schema)] = self.read(lambda s: s.db.rows("callers.schema")).result()  # type: ignore[attr-defined]
        return StoreLocation(database=database, schema=schema, secret=self.secret.hex())

    def _make_day(self, day: int) -> None:
        self.write(lambda s: s.transaction.partitions.ensure(day)).result()  # type: ignore[attr-defined]


def open_postgres(
    url: str, *, lanes: int = 4, request_timeout_ms: int = REQUEST_TIMEOUT_MS
) -> PostgresStore:
    """Raises StoreRefused if the server's settings are unsafe or its schema is not current."""
    where = parse(url)
    db = PostgresDatabase(where)
    try:
        refuse_unsafe(_read(db, _facts))
        todo = _read(db, migrations.pending)
    finally:
        db.close()
    if todo:
        names = ", ".join(f"{m.number:04}_{m.name}" for m in todo)
        raise StoreRefused(f"the schema lacks {names}; run: penstock migrate --store URL")
    return PostgresStore(where, lanes=lanes, request_timeout_ms=request_timeout_ms)


def clock_of(store: SqlStore) -> Callable[[], int]:
    """A function that reads the database's time in milliseconds; call it from a thread."""
    return lambda: store.read(lambda session: _time(session.db)).result()  # type: ignore[attr-defined]


def migrate(url: str) -> list[Migration]:
    """Apply pending migrations, all or nothing; returns them."""
    db = PostgresDatabase(parse(url))
    try:
        refuse_unsafe(_read(db, _facts))
        return migrations.apply(db, now=_read(db, _time))
    finally:
        db.close()


def pending_sql(url: str | None = None) -> str:
    """The SQL that `migrate` would run; without a URL, all of it."""
    if url is None:
        return _script(migrations.shipped("postgres"), now=0)
    db = PostgresDatabase(parse(url))
    try:
        return _script(_read(db, migrations.pending), now=_read(db, _time))
    finally:
        db.close()


def refuse_unsafe(facts: Mapping[str, str]) -> None:
    """Check a server's settings; raises StoreRefused for the first unsafe one."""
    version = int(facts["server_version_num"])
    if version < OLDEST_SERVER:
        raise StoreRefused(f"PostgreSQL {version // 10_000} is too old; 13 or later is needed")
    for name, wanted in _NEEDED.items():
        if facts.get(name, wanted) != wanted:
            raise StoreRefused(f"PostgreSQL's {name} is {facts[name]}; it must be {wanted}")


def _open_writer(url: PostgresUrl) -> SqlSession:
    db = PostgresDatabase(url)
    try:
        refuse_unsafe(_read(db, _facts))  # after a failover it may be another server
        process, start = _read(db, _process)
    except BaseException:
        db.abandon()
        raise
    rows = MovingRows(process % STRIPES, slots=STRIPES, start=start)
    return SqlSession(db, counter_rows=rows)


def _read(db: Database, what: Callable[[Database], T]) -> T:
    """Read in a transaction of its own."""
    for _ in range(2):
        db.begin(durable=False)
        try:
            return what(db)
        except Collision as error:  # a proxy that loses prepared statements fails the first time
            collision = error
        finally:
            db.rollback()
    raise StoreUnavailable(str(collision)) from collision


def _facts(db: Database) -> Mapping[str, str]:
    return dict(db.rows("session.facts"))


def _process(db: Database) -> tuple[int, int]:
    """A number that no other connection has at the same time, and one that none had before."""
    [(process, number)] = db.rows("session.process")
    return int(process), int(number)


def _time(db: Database) -> int:
    [(now,)] = db.rows("clock.read")
    return int(now)


def _script(todo: list[Migration], *, now: int) -> str:
    if not todo:
        return ""
    queries = Queries("postgres")
    parts = [queries.text("session.begin"), queries.text("migrations.lock")]
    parts.append(queries.text("migrations.create"))
    for migration in todo:
        note = {"number": migration.number, "name": migration.name}
        note |= {"checksum": migration.checksum, "applied_at": now}
        parts += [
            migration.text.strip().rstrip(";"),
            _with_literals(queries.text("migrations.add"), note),
        ]
    return ";\n\n".join([*parts, "COMMIT"]) + ";\n"


def _with_literals(text: str, values: Mapping[str, object]) -> str:
    """The statement with its values as literals."""

    def literal(match: re.Match[str]) -> str:
        value = values[match[1]]
        return str(value) if isinstance(value, int) else "'" + str(value).replace("'", "''") + "'"

    return re.sub(r":(\w+)", literal, text)
