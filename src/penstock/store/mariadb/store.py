"""A store on MariaDB 10.11 or later, shared by any number of nodes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TypeVar

from penstock.domain.errors import PenstockError, StoreRefused, StoreUnavailable
from penstock.store.callers.mariadb_transactions import MariadbCallerTransactions
from penstock.store.commit.session import SqlSession
from penstock.store.database import Collision, Database
from penstock.store.maintenance import migrate as migrations
from penstock.store.maintenance.migrate import Migration
from penstock.store.mariadb.connection import MariadbDatabase
from penstock.store.mariadb.url import MariadbUrl, parse
from penstock.store.mariadb.wakeups import MariadbWakeups
from penstock.store.partitions import Partitions
from penstock.store.store import REQUEST_TIMEOUT_MS, SqlStore
from penstock.store.verbs.counter_rows import FixedRow
from penstock.supervision.health import NodeHealth

T = TypeVar("T")

STRIPES = 64  # counter rows per queue; connections are spread over them

# Without these, an acknowledged message may be lost, or a torn page go unnoticed.
NEEDED = {
    "innodb_flush_log_at_trx_commit": ("1", "3"),
    "innodb_doublewrite": ("1",),
    "read_only": ("0",),
}

_log = logging.getLogger("penstock.store")


class MariadbStore(SqlStore):
    def __init__(self, url: MariadbUrl, *, lanes: int, request_timeout_ms: int) -> None:
        health = NodeHealth()
        self.wakeups = MariadbWakeups(
            lambda: MariadbDatabase(url, guarded=False), on_wakeup=self.pass_on, health=health
        )
        try:
            super().__init__(
                "mariadb",
                open_writer=lambda _: _open_writer(url),
                open_reader=lambda: SqlSession(MariadbDatabase(url, read_only=True)),
                lanes=lanes,
                announce=self.wakeups.announce,
                health=health,
                request_timeout_ms=request_timeout_ms,
            )
            self.callers = MariadbCallerTransactions()
        except BaseException:
            self.wakeups.close()
            raise

    def close(self) -> None:
        super().close()
        self.wakeups.close()


def open_mariadb(
    url: str, *, lanes: int = 4, request_timeout_ms: int = REQUEST_TIMEOUT_MS
) -> MariadbStore:
    """Raises StoreRefused if the server's settings are unsafe or its schema is not current."""
    where = parse(url)
    db = MariadbDatabase(where, guarded=False)
    try:
        refuse_unsafe(_read(db, _facts))
        todo = _read(db, migrations.pending)
        if not todo:
            _drop_leftovers(db)
    finally:
        db.close()
    if todo:
        names = ", ".join(f"{m.number:04}_{m.name}" for m in todo)
        raise StoreRefused(f"the schema lacks {names}; run: penstock migrate --store URL")
    return MariadbStore(where, lanes=lanes, request_timeout_ms=request_timeout_ms)


def clock_of(store: SqlStore) -> Callable[[], int]:
    """A function that reads the database's time in milliseconds; call it from a thread."""
    return lambda: store.read(lambda session: _time(session.db)).result()  # type: ignore[attr-defined]


def migrate(url: str) -> list[Migration]:
    """Apply pending migrations; returns them.

    MariaDB commits each statement of a migration.  One that was interrupted is not in the list of
    applied migrations, and runs again: its statements can be repeated.
    """
    db = MariadbDatabase(parse(url), guarded=False)
    try:
        refuse_unsafe(_read(db, _facts))
        return migrations.apply(db, now=_read(db, _time))
    finally:
        db.close()


def pending_sql(url: str) -> str:
    """The SQL that `migrate` would run."""
    db = MariadbDatabase(parse(url), guarded=False)
    try:
        todo = _read(db, migrations.pending)
    finally:
        db.close()
    return "\n".join(f"-- {m.number:04}_{m.name}\n{m.text}" for m in todo)


def refuse_unsafe(facts: Mapping[str, str]) -> None:
    """Check a server's settings; raises StoreRefused for the first unsafe one."""
    for name, wanted in NEEDED.items():
        if facts[name] not in wanted:
            raise StoreRefused(f"MariaDB's {name} is {facts[name]}; it must be {wanted[0]}")


def make_day(url: MariadbUrl, day: int) -> None:
    """Create the tables of a day, on a connection of its own."""
    db = MariadbDatabase(url, guarded=False)
    try:
        [(is_locked,)] = db.rows("partitions.lock_new")
        if not is_locked:
            raise StoreUnavailable("MariaDB: another node has been creating a day for 10 s")
        partitions = Partitions(db)
        if day not in partitions.days():
            partitions.create(day)
            db.rows("session.process")  # sends what waits
    finally:
        db.close()


def _drop_leftovers(db: Database) -> None:
    """Drop tables of days that were removed by a node that ended before it dropped them."""
    try:
        db.rows("partitions.lock_new")
        days = {str(day) for day in Partitions(db).days()}
        for (name,) in db.rows("partitions.all_tables"):
            what, _, day = name.rpartition("_")
            if day not in days:
                db.run(f"partitions.drop_{what}", day=int(day))
    except (PenstockError, Collision):
        _log.warning("tables of removed days could not be dropped", exc_info=True)


def _open_writer(url: MariadbUrl) -> SqlSession:
    db = MariadbDatabase(url)
    try:
        refuse_unsafe(_read(db, _facts))  # after a failover it may be another server
        [(process,)] = db.rows("session.process")
    except BaseException:
        db.abandon()
        raise
    session = SqlSession(db, counter_rows=FixedRow(process % STRIPES))
    session.transaction.partitions.make_elsewhere(lambda day: make_day(url, day), set())
    return session


def _read(db: Database, what: Callable[[Database], T]) -> T:
    """Read in a transaction of its own."""
    db.begin(durable=False)
    try:
        return what(db)
    finally:
        db.rollback()


def _facts(db: Database) -> Mapping[str, str]:
    return {name: str(value) for name, value in db.rows("session.facts")}


def _time(db: Database) -> int:
    [(now,)] = db.rows("clock.read")
    return int(now)
