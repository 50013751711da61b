"""Checks of a SQLite store for `penstock doctor`; a server may be using it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import apsw

from penstock.domain.errors import PenstockError
from penstock.domain.store.finding import Finding, fail, ok, warn
from penstock.store.commit.session import SqlSession
from penstock.store.damage.damage_map import damaged_pages
from penstock.store.damage.log_damage import describe_damage, kept_logs, recovery_advice
from penstock.store.maintenance.checks import examine_content
from penstock.store.sqlite import checksums
from penstock.store.sqlite.connection import OLDEST_SQLITE, SqliteDatabase, end_of_log


def examine(path: Path, *, now: int, space: bool = False) -> Iterator[Finding]:
    yield _version()
    if not path.exists():
        yield warn("store", f"no store at {path} yet; `penstock serve` creates it")
        return
    try:
        # Opened for writing, as by the server: this refuses settings that may lose a commit.
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
        db.abandon()  # a check must not move a log that may not be durable; only a start may
    yield _checksums(path)
    if is_sound == "ok":
        yield ok("integrity", "quick_check passed")
    else:
        yield fail("integrity", is_sound)
        yield from _damaged_pages(path)
    yield from _inside(path, now, space)


def _version() -> Finding:
    version = apsw.sqlite_lib_version()
    if apsw.SQLITE_VERSION_NUMBER < OLDEST_SQLITE:
        return fail("sqlite", f"{version} can corrupt a WAL; 3.51.3 or later is needed")
    return ok("sqlite", version)


def _log(path: Path, db: SqliteDatabase) -> Iterator[Finding]:
    """Checks twice, because a log that a server is writing to may look damaged."""
    end = end_of_log(db, path)
    if end is not None and end.is_damage and end_of_log(db, path) == end:
        yield fail("log", f"{describe_damage(path, end)}. {recovery_advice()}")
    for kept in kept_logs(path, "damaged"):
        yield fail(
            "log",
            f"commits were dropped: {kept} is the log as it was. Remove the file when you do not "
            "need it any more",
        )
    for kept in kept_logs(path, "unfinished"):
        yield warn("log", f"a power cut left an unfinished end: {kept} is the log as it was")


def _checksums(path: Path) -> Finding:
    if checksums.has_checksums(path):
        return ok("checksums", "every page has one")
    return warn("checksums", "the file was created without: a flipped bit may go unnoticed")


def _quick_check(db: apsw.Connection) -> str:
    try:
        return str(db.execute("PRAGMA quick_check(1)").get)
    except apsw.Error as error:
        return f"{type(error).__name__}: {error}"


def _damaged_pages(path: Path) -> Iterator[Finding]:
    """Call it after all connections are closed: reading the file would drop their locks."""
    try:
        pages = damaged_pages(path)
    except (PenstockError, OSError) as error:
        yield fail("pages", str(error))
        return
    yield from (fail("pages", page.text) for page in pages)
    if pages:
        yield fail("damage", "Restore a backup, or run `penstock doctor --salvage NEW_STORE`")


def _inside(path: Path, now: int, space: bool) -> Iterator[Finding]:
    try:
        session = SqlSession(SqliteDatabase(path, read_only=True))
    except PenstockError as error:
        yield fail("store", str(error))
        return
    try:
        yield from examine_content(session, lambda: now, space=space)
    except PenstockError as error:
        yield fail("store", str(error))
    finally:
        session.db.close()
