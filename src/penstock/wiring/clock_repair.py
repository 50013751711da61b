"""Sets back the time of a store that was written to while the clock was in the future."""

from __future__ import annotations

from pathlib import Path

from penstock.domain.errors import PenstockError
from penstock.domain.optional_parts import not_installed
from penstock.domain.store.finding import Finding, fail, ok
from penstock.domain.store.store_time import (
    EARLIEST_WALL,
    MAX_CARRY_MS,
    difference_text,
    instant_text,
)
from penstock.outbound.clock import SystemClock, wall_ms
from penstock.ports.store import Session
from penstock.settings import Settings
from penstock.store.maintenance import clock_mark
from penstock.store.maintenance.clock_mark import SetBack
from penstock.store.store import open_sqlite

_NAME = "repair-clock"


def repair_clock(settings: Settings) -> Finding:
    """Set the store's time back even if it is a little ahead: the operator trusts the clock."""
    try:
        path = settings.sqlite_path
        return _repair_shared(settings.store_url) if path is None else _repair(path, settings)
    except PenstockError as error:
        return fail(_NAME, str(error))


def _repair(path: Path, settings: Settings) -> Finding:
    if not path.exists():
        return fail(_NAME, f"there is no store at {path}")
    now = wall_ms()
    if now < EARLIEST_WALL:
        return fail(_NAME, f"the clock says {instant_text(now)}: set it first")
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
            return fail(_NAME, "a process has the store open: stop it first")
        # A process that starts meanwhile adopts this time.
        SystemClock(now, agree=lambda offset: store.agree(offset, repair))
    finally:
        store.close()
    return found[0] if found else fail(_NAME, "a process has opened the store: stop it first")


def _repair_shared(url: str) -> Finding:
    """Nodes may keep running: they follow the clock of the database."""
    try:
        from penstock.store.postgres import store as postgres_store
    except ImportError:
        return fail(_NAME, not_installed("PostgreSQL support", "postgres"))
    store = postgres_store.open_postgres(url)
    try:
        now = postgres_store.clock_of(store)()
        mark = store.read(clock_mark.read_mark).result()
        return _finding(clock_mark.follow(store, now=now), mark=mark, now=now)
    finally:
        store.close()


def _finding(done: SetBack | None, *, mark: int, now: int) -> Finding:
    if done is not None:
        return ok(_NAME, done.text)
    times = f"the store's time is {instant_text(mark)}, the clock's {instant_text(now)}"
    if mark <= now:
        return ok(_NAME, f"nothing to repair: {times}")
    ahead = difference_text(mark - now)
    most = difference_text(MAX_CARRY_MS)
    return ok(_NAME, f"nothing to repair: {times}, {ahead} ahead, and nodes may differ by {most}")
