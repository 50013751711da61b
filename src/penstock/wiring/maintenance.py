"""Backup, promotion and migrations of the store that the settings name."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

import msgspec

from penstock.domain.errors import InvalidRequest, StoreRefused
from penstock.domain.optional_parts import not_installed
from penstock.outbound.clock import wall_ms
from penstock.settings import Settings
from penstock.store.maintenance import backup as copies
from penstock.store.maintenance import migrate as migrations
from penstock.store.sqlite.connection import SqliteDatabase

Progress = Callable[[int, int], None]


class Copied(msgspec.Struct, frozen=True):
    path: str
    size: int


def backup(settings: Settings, target: Path, *, replace: bool, progress: Progress) -> Copied:
    """Make a checked copy of a SQLite store; in a folder, the copy is named after the time."""
    path = settings.sqlite_path
    if path is None:
        raise InvalidRequest("use PostgreSQL's own tools for this: pg_dump, pg_basebackup")
    if target.is_dir():
        moment = datetime.fromtimestamp(wall_ms() // 1000, UTC)
        target = target / f"penstock-{moment:%Y%m%dT%H%M%SZ}.db"
    size = copies.backup(path, target, replace=replace, progress=progress)
    return Copied(str(target), size)


def pending_sql(settings: Settings) -> str:
    """The SQL that `migrate` would run; empty when nothing is pending."""
    path = settings.sqlite_path
    if path is None:
        _refuse_without_postgres()
        from penstock.store.postgres.store import pending_sql as pending_in_postgres

        return pending_in_postgres(settings.store_url)
    todo = migrations.shipped("sqlite")
    if path.exists():
        db = SqliteDatabase(path, read_only=True)
        try:
            todo = migrations.pending(db)
        finally:
            db.close()
    return "\n".join(f"-- {m.number:04}_{m.name}\n{m.text}" for m in todo)


def promote(settings: Settings, url: str, *, progress: Progress) -> object:
    """Move everything from SQLite to an empty PostgreSQL database."""
    path = settings.sqlite_path
    if path is None:
        raise InvalidRequest("only a SQLite store can be promoted; this one is PostgreSQL already")
    if not path.exists():
        raise InvalidRequest(f"there is no store at {path}")
    _refuse_without_postgres()
    from penstock.store.maintenance.promote import promote as move

    return move(path, url, progress=lambda _table, done, total: progress(done, total))


def _refuse_without_postgres() -> None:
    if find_spec("psycopg") is None:
        raise StoreRefused(not_installed("PostgreSQL support", "postgres"))
