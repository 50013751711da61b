"""Moves a whole SQLite store into an empty PostgreSQL store: all of it, or nothing.

Both schemas have the same tables and columns, so tables are copied by name, whatever they are.
Nobody writes to either side meanwhile; SQLite's file is left as it is.  Numbers, secret and leases
move along: a receipt given by the old store is good for the new one.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from penstock.domain.errors import InvalidRequest, StoreRefused
from penstock.store.database import Database, Row
from penstock.store.maintenance import migrate as migrations
from penstock.store.partitions import Partitions
from penstock.store.postgres.connection import PostgresDatabase
from penstock.store.postgres.url import parse
from penstock.store.sqlite.connection import SqliteDatabase, open_settled
from penstock.store.sqlite.write_lock import Turns

CHUNK = 5_000  # rows of one COPY
Progress = Callable[[str, int, int], None]

# Each backend has its own migrations and its own way of numbering; days are made, not copied.
_NOT_COPIED = {"migration", "sequence", "day"}
_ESCAPES = str.maketrans({"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"})


def promote(sqlite_path: Path, postgres_url: str, *, progress: Progress) -> dict[str, int]:
    """Copy and check; returns the number of rows by table.  `progress(table, done, total)`.

    Raises StoreRefused if either schema is not ours, the target is not empty, or what has arrived
    is not what was sent; then the target is as empty as before.
    """
    if not sqlite_path.exists():
        raise InvalidRequest(f"there is no store at {sqlite_path}")
    turns = Turns(sqlite_path)
    try:
        source = open_settled(sqlite_path, turns)
    except BaseException:
        turns.close()
        raise
    try:
        target = PostgresDatabase(parse(postgres_url))
        try:
            return _promote(source, target, progress)
        finally:
            target.close()
    finally:
        source.close()
        turns.close()


def _promote(
    source: SqliteDatabase, target: PostgresDatabase, progress: Progress
) -> dict[str, int]:
    source.begin(durable=True)  # nobody else can write to it now
    try:
        target.begin(durable=True)
        try:
            target.be_patient()
            counts = _copy_all(source, target, progress)
            target.commit()
        except BaseException:
            target.rollback()
            raise
    finally:
        source.rollback()
    return counts


def _copy_all(
    source: SqliteDatabase, target: PostgresDatabase, progress: Progress
) -> dict[str, int]:
    _refuse_unfit(source, target)
    days = [day for (day,) in source.rows("partitions.days")]
    for day in days:
        Partitions(target).ensure(day)
    tables = [name for (name,) in source.rows("promote.tables") if name not in _NOT_COPIED]
    counts = {table: _copy(source, target, table, progress) for table in tables}
    [(taken_no,)] = source.rows("promote.taken")
    target.post("promote.take", {"taken_no": taken_no})
    unbalanced = [queue_no for (queue_no,) in target.rows("promote.unbalanced")]
    if unbalanced:
        raise StoreRefused(f"the books of these queues do not balance: {unbalanced}")
    return counts


def _refuse_unfit(source: SqliteDatabase, target: PostgresDatabase) -> None:
    for db in (source, target):
        if migrations.pending(db):
            raise StoreRefused(
                f"the schema of the {db.dialect} store is not current; "
                "run: penstock migrate --store URL"
            )
    for (table,) in target.rows("promote.tables"):
        target.post("promote.lock", table=table)
        if table != "migration" and target.rows("promote.any_row", table=table):
            raise StoreRefused(f"the PostgreSQL store is not empty: there are rows in {table!r}")


def _copy(source: SqliteDatabase, target: PostgresDatabase, table: str, progress: Progress) -> int:
    columns = _columns(source, table)
    if set(columns) != set(_columns(target, table)):
        raise StoreRefused(f"the columns of {table!r} differ between SQLite and PostgreSQL")
    [(total,)] = source.rows("promote.count", table=table)
    names = ", ".join(columns)
    rows = iter(source.connection.execute(source.text("promote.all", table=table, names=names)))
    done = 0
    while chunk := list(itertools.islice(rows, CHUNK)):
        target.copy("promote.copy", _lines(chunk), table=table, names=names)
        done += len(chunk)
        progress(table, done, total)
    for column, sequence in target.rows("promote.numbered", {"table_name": table}):
        target.post("promote.go_on_after", {"sequence_name": sequence}, table=table, column=column)
    [(arrived,)] = target.rows("promote.count", table=table)
    if arrived != total or done != total:
        raise StoreRefused(f"of {total} rows of {table!r} {arrived} have arrived")
    return done


def _columns(db: Database, table: str) -> list[str]:
    return [name for (name,) in db.rows("promote.columns", {"table_name": table})]


def _lines(rows: list[Row]) -> Iterator[bytes]:
    for row in rows:
        yield ("\t".join(map(_field, row)) + "\n").encode()


def _field(value: Any) -> str:
    """A value in the text format of COPY."""
    if value is None:
        return "\\N"
    return value.translate(_ESCAPES) if isinstance(value, str) else str(value)
