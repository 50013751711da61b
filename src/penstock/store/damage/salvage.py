"""Copies everything readable of a damaged SQLite store into a new one, and lists what is lost.

The damaged store is only read, page by page and without SQLite; see page_image.py.  The new store
is created by our own migrations, filled row by row, made consistent (salvage_repair.py) and checked
before it gets its name.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import apsw
import msgspec

from penstock.domain.errors import InvalidRequest, StoreDamaged, StoreRefused, StoreUnavailable
from penstock.files.folder import sync_path
from penstock.store.damage.btree import Value
from penstock.store.damage.page_image import PageImage
from penstock.store.damage.salvage_repair import LostMessage, repair
from penstock.store.damage.salvage_source import SalvageSource, StoredTable
from penstock.store.maintenance import migrate as migrations
from penstock.store.partitions import Partitions
from penstock.store.sqlite import checksums
from penstock.store.sqlite.connection import SqliteDatabase
from penstock.store.sqlite.errors import storage_error
from penstock.store.sqlite.write_lock import WriteLock

CHUNK = 1_000
Progress = Callable[[int, int], None]

_MADE_ANEW = {"migration", "day", "sequence", "sqlite_sequence"}
_OF_A_DAY = re.compile(r"(history|attempt|attempt_log|body)_(\d+)")


class SalvagedTable(msgspec.Struct, frozen=True):
    table: str
    rows: int  # that were copied
    unreadable_pages: int = 0
    unreadable_rows: int = 0  # known to have existed


class SalvageReport(msgspec.Struct, frozen=True):
    store: str
    corrected: list[str]  # places where one flipped bit was corrected
    lost_log_frames: int
    tables: list[SalvagedTable]
    lost_messages: list[LostMessage]
    repaired: list[str]  # what was changed so that the rest is consistent

    @property
    def is_complete(self) -> bool:
        pages = any(table.unreadable_pages or table.unreadable_rows for table in self.tables)
        return not (pages or self.lost_messages or self.lost_log_frames)


def salvage(source: Path, target: Path, *, now: int, progress: Progress) -> SalvageReport:
    """Raises StoreDamaged if not even the list of tables can be read."""
    if not source.exists():
        raise InvalidRequest(f"there is no store at {source}")
    if target.exists():
        raise InvalidRequest(f"{target} exists already; name a new file or folder")
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with exclusive_access(source), closing(PageImage(source)) as image:
            result = _salvage(image, partial, target, now=now, progress=progress)
        _finish(partial, target)
    except apsw.Error as error:
        raise storage_error(error) from error
    except OSError as error:
        raise StoreUnavailable(f"cannot salvage {source} into {target}: {error}") from error
    finally:
        for ending in ("", "-wal", "-shm"):
            partial.with_name(partial.name + ending).unlink(missing_ok=True)
    return result


@contextmanager
def exclusive_access(path: Path) -> Iterator[None]:
    """Open the store exclusively; raises StoreRefused if another process has it open."""
    try:
        write_lock = WriteLock(path)
    except (OSError, StoreUnavailable):  # read-only disk: no other process writes, either
        yield
        return
    try:
        write_lock.acquire()
        try:
            if not write_lock.enter():
                raise StoreRefused(f"{path} is in use: stop the server and all workers first")
            yield
        finally:
            write_lock.leave()
            write_lock.release()
    finally:
        write_lock.close()


def _salvage(
    image: PageImage, partial: Path, target: Path, *, now: int, progress: Progress
) -> SalvageReport:
    source = SalvageSource(image)
    if "queue" not in source.tables and "message" not in source.tables:
        raise StoreDamaged("the list of tables cannot be read: nothing can be salvaged")
    source.walk_all()
    if not image.has_sums:
        _begin_without_checksums(partial)
    db = SqliteDatabase(partial)
    try:
        _make_tables(db, source, now=now)
        copier = _Copier(db, source, progress)
        tables = [copier.copy(name) for name in copier.names]
        _keep_numbers(db, source)
        lost, repaired = repair(db, source, now=now)
    except BaseException:
        db.abandon()
        raise
    db.close()
    return SalvageReport(str(target), image.corrected, image.lost_frames, tables, lost, repaired)


def _begin_without_checksums(partial: Path) -> None:
    """For a file that an application shares, which could not read checksums."""
    db = apsw.Connection(str(partial))
    try:
        db.pragma("journal_mode", "wal")
    finally:
        db.close()


def _make_tables(db: SqliteDatabase, source: SalvageSource, *, now: int) -> None:
    """Tables of this version: columns that an older store lacks get their defaults."""
    applied = {values["number"] for values in _values(source, "migration")}
    shipped = {migration.number for migration in migrations.shipped("sqlite")}
    newer = sorted(str(number) for number in applied - shipped)
    if newer:
        raise StoreRefused(f"the store is newer than this program: migrations {', '.join(newer)}")
    migrations.apply(db, now=now)
    db.begin(durable=True)
    days = {int(day) for _, day in map(_day_of, source.tables) if day}
    for day in sorted(days | {int(str(v["day"])) for v in _values(source, "day")}):
        Partitions(db).ensure(day)
    db.commit()


class _Copier:
    def __init__(self, db: SqliteDatabase, source: SalvageSource, progress: Progress) -> None:
        self._db = db
        self._source = source
        self._progress = progress
        tables = [name for (name,) in db.rows("promote.tables")]
        self.names = [name for name in tables if name not in _MADE_ANEW and self._was_there(name)]
        self._done = 0

    def copy(self, name: str) -> SalvagedTable:
        gaps = self._source.gaps.get(name, [])
        table = self._source.tables.get(name)
        rows = read = 0
        if table is not None:
            kept = {column for (column,) in self._db.rows("promote.columns", {"table_name": name})}
            records = (_only(table.values(row), kept) for row in self._source.rows(name))
            while chunk := list(itertools.islice(records, CHUNK)):
                read += len(chunk)
                rows += self._add(name, chunk)
        self._done += 1
        self._progress(self._done, len(self.names))
        pages = sum(gap.page_no > 0 for gap in gaps) + (table is None)
        known = sum(gap.page_no == 0 for gap in gaps) + read - rows
        return SalvagedTable(name, rows, pages, known)

    def _was_there(self, name: str) -> bool:
        """False for a table of a later version; True if its definition may be unreadable."""
        return name in self._source.tables or bool(self._source.schema_gaps)

    def _add(self, table: str, records: list[dict[str, Value]]) -> int:
        before = self._db.connection.total_changes()
        self._db.begin(durable=False)
        for columns, group in itertools.groupby(records, key=tuple):
            marks = ", ".join("?" * len(columns))
            text = self._db.text("salvage.add", table=table, names=", ".join(columns), marks=marks)
            self._db.connection.executemany(text, (tuple(r.values()) for r in group))
        self._db.commit()
        return self._db.connection.total_changes() - before


def _only(values: dict[str, Value], columns: set[str]) -> dict[str, Value]:
    return {name: value for name, value in values.items() if name in columns}


def _keep_numbers(db: SqliteDatabase, source: SalvageSource) -> None:
    """Continue all numbering after the largest number used, removed rows included."""
    db.begin(durable=False)
    for values in _values(source, "sqlite_sequence"):
        db.run("salvage.raise_numbers", {"name": values["name"], "seq": values["seq"]})
    taken = [values["taken_no"] for values in _values(source, "sequence")]
    for table in (name for (name,) in db.rows("promote.tables")):
        if table == "message" or _OF_A_DAY.fullmatch(table):
            taken += [number for (number,) in db.rows("salvage.last_message", table=table)]
    db.run("salvage.take", {"taken_no": max((t for t in taken if isinstance(t, int)), default=0)})
    db.commit()


def _values(source: SalvageSource, name: str) -> Iterable[dict[str, Value]]:
    table: StoredTable | None = source.tables.get(name)
    return () if table is None else [table.values(row) for row in source.rows(name)]


def _day_of(table: str) -> tuple[str, str]:
    found = _OF_A_DAY.fullmatch(table)
    return (found[1], found[2]) if found else ("", "")


def _finish(partial: Path, target: Path) -> None:
    db = apsw.Connection(str(partial), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        found = checksums.integrity_error(db)
    finally:
        db.close()
    if found:
        raise StoreUnavailable(f"the new store does not pass SQLite's integrity check: {found}")
    sync_path(partial)
    partial.replace(target)
    sync_path(target.parent)
