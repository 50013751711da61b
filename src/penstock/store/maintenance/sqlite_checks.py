"""A check-up of a SQLite store, beside the server that may be using it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import apsw

from penstock.domain.errors import PenstockError
from penstock.domain.store.finding import Finding, fail, ok, warn
from penstock.store.commit.session import SqlSession
from penstock.store.damage.damage_map import damaged_pages
from penstock.store.damage.log_damage import asides, describe, what_to_do
from penstock.store.maintenance.checks import examine_books, examine_clock, examine_schema
from penstock.store.maintenance.hold_checks import examine_holds
from penstock.store.maintenance.limit_checks import examine_limits
from penstock.store.sqlite import checksums
from penstock.store.sqlite.connection import OLDEST_SQLITE, SqliteDatabase, end_of_log


def examine(path: Path, *, now: int) -> Iterator[Finding]:
    yield _version()
    if not path.exists():
        yield warn("store", f"there is none at {path} yet; `penstock serve` makes it")
        return
    try:
        # For writing, as the server does: this refuses settings under which a commit may be lost.
        db = SqliteDatabase(path)
    except PenstockError as error:
        yield fail("store", str(error))
        yield from _damaged_pages(path)
        return
    try:
        yield ok("journal", f"{db.connection.pragma('journal_mode')}, and commits are synced")
        yield from _log(path, db)
        is_sound = _quick_check(db.connection)
    finally:
        db.abandon()  # a look must not move a log that may not be durable: a start does that
    yield _checksums(path)
    if is_sound == "ok":
        yield ok("integrity", "quick_check passed")
    else:
        yield fail("integrity", is_sound)
        yield from _damaged_pages(path)
    yield from _inside(path, now)


def _version() -> Finding:
    version = apsw.sqlite_lib_version()
    if apsw.SQLITE_VERSION_NUMBER < OLDEST_SQLITE:
        return fail("sqlite", f"{version} can corrupt a WAL; 3.51.3 or later is needed")
    return ok("sqlite", version)


def _log(path: Path, db: SqliteDatabase) -> Iterator[Finding]:
    """While a server has the store open the log is longer at every look, and not damaged."""
    end = end_of_log(db, path)
    if end is not None and end.is_damage and end_of_log(db, path) == end:
        yield fail("log", f"{describe(path, end)}. {what_to_do()}")
    for kept in asides(path, "damaged"):
        yield fail(
            "log",
            f"commits were given up: {kept} is the log as it was. Remove the file when it is no "
            "longer needed",
        )
    for kept in asides(path, "unfinished"):
        yield warn("log", f"a power cut left an unfinished end: {kept} is the log as it was")


def _checksums(path: Path) -> Finding:
    if checksums.has_checksums(path):
        return ok("checksums", "every page has one")
    return warn("checksums", "the file was made without: a flipped bit may go unnoticed")


def _quick_check(db: apsw.Connection) -> str:
    try:
        return str(db.execute("PRAGMA quick_check(1)").get)
    except apsw.Error as error:
        return f"{type(error).__name__}: {error}"


def _damaged_pages(path: Path) -> Iterator[Finding]:
    """After all connections to it are closed: reading it as a file would drop their locks."""
    try:
        pages = damaged_pages(path)
    except (PenstockError, OSError) as error:
        yield fail("pages", str(error))
        return
    yield from (fail("pages", page.text) for page in pages)
    if pages:
        yield fail("damage", "Restore a backup, or run `penstock doctor --salvage NEW_STORE`")


def _inside(path: Path, now: int) -> Iterator[Finding]:
    try:
        session = SqlSession(SqliteDatabase(path, read_only=True))
    except PenstockError as error:
        yield fail("store", str(error))
        return
    try:
        schema = examine_schema(session)
        yield schema
        if schema.grade == "ok":
            yield examine_clock(session, now=now)
            yield from examine_books(session)
            yield from examine_limits(session)
            yield from examine_holds(session)
    except PenstockError as error:
        yield fail("store", str(error))
    finally:
        session.db.close()
