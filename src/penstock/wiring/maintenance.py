"""Backup, promotion, migrations, checks, and repair of the store that the settings name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from penstock.domain.errors import InvalidRequest, PenstockError, StoreRefused
from penstock.domain.store.finding import Finding, fail, ok, warn
from penstock.domain.store.store_time import (
    EARLIEST_WALL,
    MAX_CARRY_MS,
    difference_text,
    instant_text,
)
from penstock.outbound import machine
from penstock.outbound.clock import SystemClock, wall_ms
from penstock.outbound.secret_file import read_secret_file
from penstock.ports.store import Session
from penstock.settings import Settings
from penstock.store.damage import accept_loss as cut
from penstock.store.damage import salvage as salvages
from penstock.store.maintenance import backup as copies
from penstock.store.maintenance import clock_mark, sqlite_checks
from penstock.store.maintenance import migrate as migrations
from penstock.store.maintenance.clock_mark import SetBack
from penstock.store.sqlite.connection import SqliteDatabase
from penstock.store.store import open_sqlite
from penstock.wiring.broker import require_store
from penstock.wiring.server_stores import server_stores

Progress = Callable[[int, int], None]
SalvageReport = salvages.SalvageReport
_REPAIR_CLOCK = "repair-clock"


class BackupResult(msgspec.Struct, frozen=True):
    path: str
    size: int


def backup(settings: Settings, target: Path, *, replace: bool, progress: Progress) -> BackupResult:
    """Make a checked copy of a SQLite store; in a folder, the copy is named after the time."""
    path = settings.sqlite_path
    if path is None:
        there = server_stores(settings.store_url)
        raise InvalidRequest(f"use {there.name}'s own tools for this: {there.backup_tools}")
    if target.is_dir():
        moment = datetime.fromtimestamp(wall_ms() // 1000, UTC)
        target = target / f"penstock-{moment:%Y%m%dT%H%M%SZ}.db"
    size = copies.backup(path, target, replace=replace, progress=progress)
    return BackupResult(str(target), size)


def pending_sql(settings: Settings) -> str:
    """The SQL that `migrate` would run; empty when nothing is pending."""
    path = settings.sqlite_path
    if path is None:
        return server_stores(settings.store_url).pending_sql(settings.store_url)
    todo = migrations.shipped("sqlite")
    if path.exists():
        db = SqliteDatabase(path, read_only=True)
        try:
            todo = migrations.pending(db)
        finally:
            db.close()
    return "\n".join(f"-- {m.number:04}_{m.name}\n{m.text}" for m in todo)


def promote(settings: Settings, url: str, *, progress: Progress) -> object:
    """Move everything from SQLite to an empty database of a server."""
    path = settings.sqlite_path
    if path is None:
        name = server_stores(settings.store_url).name
        raise InvalidRequest(f"only a SQLite store can be promoted; this one is {name} already")
    require_store(settings)
    server_stores(url)  # refuses if the driver is missing
    from penstock.store.maintenance.promote import promote as move

    return move(path, url, progress=lambda _table, done, total: progress(done, total))


def examine(settings: Settings, *, space: bool = False) -> Iterator[Finding]:
    """`space`: also how much each queue takes."""
    clock = SystemClock().now
    path = settings.sqlite_path
    folder = Path(settings.data) if path is None else path.parent
    yield from machine.examine(folder, clock=clock)
    if settings.auth.secret_file is not None:
        yield _secret_file(Path(settings.auth.secret_file))
    if path is not None:
        yield from sqlite_checks.examine(path, now=wall_ms(), space=space)
        return
    try:
        there = server_stores(settings.store_url)
    except StoreRefused as error:
        yield fail("store", str(error))
        return
    yield from there.examine(settings.store_url, clock=clock, space=space)


def _secret_file(path: Path) -> Finding:
    try:
        read_secret_file(str(path))
        is_wide = path.stat().st_mode & 0o077
    except (InvalidRequest, OSError) as error:
        return fail("secret file", str(error))
    if is_wide:
        return warn("secret file", f"other users can read {path}: chmod 600 {path}")
    return ok("secret file", f"{path} is readable by its owner only")


def salvage(settings: Settings, target: Path, *, progress: Progress) -> SalvageReport:
    """Copy what is readable into a file that ends with .db, or into a new data folder."""
    source = _path(settings)
    if target.suffix != ".db":
        target = target / "penstock.db"
    return salvages.salvage(source, target, now=wall_ms(), progress=progress)


def accept_loss(settings: Settings) -> cut.AcceptedLoss:
    return cut.accept_loss(_path(settings))


def _path(settings: Settings) -> Path:
    path = settings.sqlite_path
    if path is None:
        raise InvalidRequest(
            "only a SQLite store can be salvaged here; a database server has tools of its own for"
            " this, and backups"
        )
    return path


def repair_clock(settings: Settings) -> Finding:
    """Set the store's time back even if it is a little ahead: the operator trusts the clock."""
    try:
        path = settings.sqlite_path
        return _repair_shared(settings) if path is None else _repair(path, settings)
    except PenstockError as error:
        return fail(_REPAIR_CLOCK, str(error))


def _repair(path: Path, settings: Settings) -> Finding:
    if not path.exists():
        return fail(_REPAIR_CLOCK, f"there is no store at {path}")
    now = wall_ms()
    if now < EARLIEST_WALL:
        return fail(_REPAIR_CLOCK, f"the clock says {instant_text(now)}: set it first")
    store = open_sqlite(
        path,
        now=now,
        checksums=settings.sqlite_checksums,
        patience_ms=settings.store.patience_ms,
    )
    found: list[Finding] = []

    def repair(session: Session) -> None:
        mark = clock_mark.read_mark(session)
        done = None
        if mark > now:
            done = clock_mark.set_back(session, mark=mark, now=now, since=now)
        found.append(_finding(done, mark=mark, now=now))

    try:
        if not store.is_alone():
            return fail(_REPAIR_CLOCK, "a process has the store open: stop it first")
        # A process that starts meanwhile adopts this time.
        SystemClock(now, agree=lambda offset: store.agree(offset, repair))
    finally:
        store.close()
    return (
        found[0] if found else fail(_REPAIR_CLOCK, "a process has opened the store: stop it first")
    )


def _repair_shared(settings: Settings) -> Finding:
    """Nodes may keep running: they follow the clock of the database."""
    there = server_stores(settings.store_url)
    store = there.open(settings.store_url, request_timeout_ms=settings.store.request_timeout_ms)
    try:
        now = there.clock_of(store)()
        mark = store.read(clock_mark.read_mark).result()
        return _finding(clock_mark.follow(store, now=now), mark=mark, now=now)
    finally:
        store.close()


def _finding(done: SetBack | None, *, mark: int, now: int) -> Finding:
    if done is not None:
        return ok(_REPAIR_CLOCK, done.text)
    times = f"the store's time is {instant_text(mark)}, the clock's {instant_text(now)}"
    if mark <= now:
        return ok(_REPAIR_CLOCK, f"nothing to repair: {times}")
    ahead = difference_text(mark - now)
    most = difference_text(MAX_CARRY_MS)
    return ok(
        _REPAIR_CLOCK, f"nothing to repair: {times}, {ahead} ahead, and nodes may differ by {most}"
    )
