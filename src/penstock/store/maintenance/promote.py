"""Copies a whole SQLite store into an empty PostgreSQL store, all or nothing.

Both schemas have the same tables and columns, so tables are copied by name.  Both stores are locked
meanwhile; the SQLite file is not changed.  Numbers, secret and leases are copied, too, so receipts
of the old store are valid in the new one.
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
from penstock.store.sqlite.connection import SqliteDatabase, open_synced
from penstock.store.sqlite.write_lock import WriteLock

CHUNK = 5_000  # rows of one COPY
Progress = Callable[[str, int, int], None]

# Each backend has its own migrations and its own numbering; days are created, not copied.
_NOT_COPIED = {"migration", "sequence", "day"}
_ESCAPES = str.maketrans({"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"})


def promote(sqlite_path: Path, postgres_url: str, *, progress: Progress) -> dict[str, int]:
    """Copy and check; returns the number of rows by table.  `progress(table, done, total)`.

    Raises StoreRefused if a schema is not current, the target is not empty, or the copy is not
    complete; then the target stays empty.
    """
    if not sqlite_path.exists():
        raise InvalidRequest(f"no store at {sqlite_path}")
    write_lock = WriteLock(sqlite_path)
    try:
        source = open_synced(sqlite_path, write_lock)
    except BaseException:
        write_lock.close()
        raise
    try:
        target = PostgresDatabase(parse(postgres_url))
        try:
            return _promote(source, target, progress)
        finally:
            target.close()
    finally:
        source.close()
        write_lock.close()


def _promote(
    source: SqliteDatabase, target: PostgresDatabase, progress: Progress
) -> dict[str, int]:
    source.begin(durable=True)  # locks out other writers
    try:
        target.begin(durable=True)
        try:
            target.raise_time_limits()
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
        raise StoreRefused(f"the counters of these queues do not add up: {unbalanced}")
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
        target.post(
            "promote.continue_after", {"sequence_name": sequence}, table=table, column=column
        )
    [(arrived,)] = target.rows("promote.count", table=table)
    if arrived != total or done != total:
        raise StoreRefused(f"{arrived} of {total} rows of {table!r} have arrived")
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
