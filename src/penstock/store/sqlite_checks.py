"""A check-up of a SQLite store, beside the server that may be using it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import apsw

from penstock.domain.errors import PenstockError
from penstock.domain.finding import Finding, fail, ok, warn
from penstock.store import checksums
from penstock.store.checks import examine_books, examine_clock, examine_schema
from penstock.store.hold_checks import examine_holds
from penstock.store.limit_checks import examine_limits
from penstock.store.session import SqlSession
from penstock.store.sqlite import OLDEST_SQLITE, SqliteDatabase


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
        return
    try:
        yield ok("journal", f"{db.connection.pragma('journal_mode')}, and commits are synced")
        yield from _damage(path, db.connection)
    finally:
        db.abandon()  # a look must not move a log that may not be durable: a start does that
    yield from _inside(path, now)


def _version() -> Finding:
    version = apsw.sqlite_lib_version()
    if apsw.SQLITE_VERSION_NUMBER < OLDEST_SQLITE:
        return fail("sqlite", f"{version} can corrupt a WAL; 3.51.3 or later is needed")
    return ok("sqlite", version)


def _damage(path: Path, db: apsw.Connection) -> Iterator[Finding]:
    if checksums.has_checksums(path):
        yield ok("checksums", "every page has one")
    else:
        yield warn("checksums", "the file was made without: a flipped bit may go unnoticed")
    for log in sorted(path.parent.glob(f"{path.name}-wal.damaged-*")):
        yield warn("log", f"a damaged one was put aside at an earlier start: {log}")
    try:
        told = db.execute("PRAGMA quick_check(1)").get
    except apsw.Error as error:
        told = f"{type(error).__name__}: {error}"
    yield ok("integrity", "quick_check passed") if told == "ok" else fail("integrity", str(told))


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
