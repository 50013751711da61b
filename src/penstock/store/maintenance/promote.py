"""Copies a whole SQLite store into an empty PostgreSQL or MariaDB store, all or nothing.

Both schemas have the same tables and columns, so tables are copied by name.  Both stores are locked
meanwhile; the SQLite file is not changed.  Numbers, secret and leases are copied, too, so receipts
of the old store are valid in the new one.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

from penstock.domain.errors import InvalidRequest, StoreRefused
from penstock.store.database import Database
from penstock.store.maintenance import migrate as migrations
from penstock.store.maintenance.promote_targets import PromoteTarget, open_target
from penstock.store.sqlite.connection import SqliteDatabase, open_synced
from penstock.store.sqlite.write_lock import WriteLock

CHUNK = 5_000  # rows of one COPY
Progress = Callable[[str, int, int], None]

# Each backend has its own migrations and its own numbering; days are created, not copied.
_NOT_COPIED = {"migration", "sequence", "day"}
_KEPT = {"migration", "day"}  # may have rows in an empty store


def promote(sqlite_path: Path, url: str, *, progress: Progress) -> dict[str, int]:
    """Copy and check; returns the number of rows by table.  `progress(table, done, total)`.

    Raises StoreRefused if a schema is not current, the target is not empty, or the copy is not
    complete; then the target stays empty.
    """
    if not sqlite_path.exists():
        raise InvalidRequest(f"there is no store at {sqlite_path}")
    write_lock = WriteLock(sqlite_path)
    try:
        source = open_synced(sqlite_path, write_lock)
    except BaseException:
        write_lock.close()
        raise
    try:
        target = open_target(url)
        try:
            return _promote(source, target, progress)
        finally:
            target.close()
    finally:
        source.close()
        write_lock.close()


def _promote(source: SqliteDatabase, target: PromoteTarget, progress: Progress) -> dict[str, int]:
    source.begin(durable=True)  # locks out other writers
    try:
        days = [day for (day,) in source.rows("partitions.days")]
        _refuse_outdated(source)
        target.db.begin(durable=False)
        try:
            _refuse_outdated(target.db)
        finally:
            target.db.rollback()
        target.prepare(days)
        target.db.begin(durable=True)
        try:
            target.db.raise_time_limits()
            counts = _copy_all(source, target, days, progress)
            target.db.commit()
        except BaseException:
            target.db.rollback()
            raise
    finally:
        source.rollback()
    return counts


def _copy_all(
    source: SqliteDatabase, target: PromoteTarget, days: list[int], progress: Progress
) -> dict[str, int]:
    _refuse_filled(target)
    target.ensure(days)
    tables = [name for (name,) in source.rows("promote.tables") if name not in _NOT_COPIED]
    counts = {table: _copy(source, target, table, progress) for table in tables}
    [(taken_no,)] = source.rows("promote.taken")
    target.db.post("promote.take", {"taken_no": taken_no})
    unbalanced = [queue_no for (queue_no,) in target.db.rows("promote.unbalanced")]
    if unbalanced:
        raise StoreRefused(f"the counters of these queues do not add up: {unbalanced}")
    return counts


def _refuse_outdated(db: Database) -> None:
    if migrations.pending(db):
        raise StoreRefused(
            f"the schema of the {db.dialect} store is not current; "
            "run: penstock migrate --store URL"
        )


def _refuse_filled(target: PromoteTarget) -> None:
    for (table,) in target.db.rows("promote.tables"):
        target.db.post("promote.lock", table=table)
        if table not in _KEPT and target.db.rows("promote.any_row", table=table):
            raise StoreRefused(f"the {target.name} store is not empty: there are rows in {table!r}")


def _copy(source: SqliteDatabase, target: PromoteTarget, table: str, progress: Progress) -> int:
    columns = _columns(source, table)
    if set(columns) != set(_columns(target.db, table)):
        raise StoreRefused(f"the columns of {table!r} differ between SQLite and {target.name}")
    [(total,)] = source.rows("promote.count", table=table)
    names = ", ".join(columns)
    rows = iter(source.connection.execute(source.text("promote.all", table=table, names=names)))
    done = 0
    while chunk := list(itertools.islice(rows, CHUNK)):
        target.copy(table, columns, chunk)
        done += len(chunk)
        progress(table, done, total)
    target.continue_numbers(table)
    [(arrived,)] = target.db.rows("promote.count", table=table)
    if arrived != total or done != total:
        raise StoreRefused(f"{arrived} of {total} rows of {table!r} have arrived")
    return done


def _columns(db: Database, table: str) -> list[str]:
    return [name for (name,) in db.rows("promote.columns", {"table_name": table})]
