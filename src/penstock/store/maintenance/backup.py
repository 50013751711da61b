"""Backs up a SQLite store while the server runs; the copy is complete or absent.

The copy is made in steps from one snapshot: otherwise every commit of the server would make SQLite
start over.  Meanwhile the log cannot be restarted, so the disk needs room for everything written in
that time.  The copy gets its name only after it has been checked and synced.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import apsw

from penstock.domain.errors import InvalidRequest, StoreUnavailable
from penstock.files.folder import sync_path
from penstock.store.damage.log_damage import find_log_end, refuse_damaged_log
from penstock.store.sqlite import checksums
from penstock.store.sqlite.errors import storage_error
from penstock.store.sqlite.log_sync import BUSY_MS

STEP_PAGES = 1_000
Progress = Callable[[int, int], None]


def backup(source: Path, target: Path, *, replace: bool = False, progress: Progress) -> int:
    """Copy, check, sync, rename; returns the size in bytes.  `progress(done, total)` in pages."""
    if not source.exists():
        raise InvalidRequest(f"there is no store at {source}")
    if target.exists() and not replace:
        raise InvalidRequest(f"{target} exists already")
    if target.exists() and target.samefile(source):
        raise InvalidRequest("a store cannot be its own backup")
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except OSError as error:
        raise InvalidRequest(f"cannot write beside {target}: {error.strerror}") from error
    try:
        _copy(source, partial, progress)
        _check(partial)
        sync_path(partial)
        size = partial.stat().st_size
        partial.replace(target)
        sync_path(target.parent)
    except apsw.IOError as error:
        raise StoreUnavailable("the store cannot be read; see `penstock doctor`") from error
    except apsw.Error as error:
        raise storage_error(error) from error
    except OSError as error:
        raise StoreUnavailable(f"the backup failed: {error}") from error
    finally:
        partial.unlink(missing_ok=True)
    return size


def _copy(source: Path, partial: Path, progress: Progress) -> None:
    checksums.turn_on()  # a damaged page is found while it is read
    origin = apsw.Connection(str(source), flags=apsw.SQLITE_OPEN_READONLY)
    copy = apsw.Connection(str(partial))
    try:
        origin.set_busy_timeout(BUSY_MS)
        _refuse_damaged_log(origin, source)
        origin.execute("BEGIN")
        origin.pragma("user_version")  # the first read takes the snapshot
        copy.pragma("synchronous", "off")  # synced once, at the end
        if checksums.has_checksums(source):
            _begin_with_checksums(copy, page_size=origin.pragma("page_size"))
        with copy.backup("main", origin, "main") as steps:
            while not steps.done:
                steps.step(STEP_PAGES)
                progress(steps.page_count - steps.remaining, steps.page_count)
    finally:
        copy.close()
        origin.close()


def _refuse_damaged_log(origin: apsw.Connection, source: Path) -> None:
    """Without this check, SQLite would copy what precedes the damage and report success."""
    origin.pragma("schema_version")  # a connection that has read nothing does not see the log
    for _ in range(2):  # a server may restart the log during the first check
        accepted, _moved = origin.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)
        end = find_log_end(source, accepted)
        if end is None or not end.is_damage:
            return
    refuse_damaged_log(source, end)


def _begin_with_checksums(copy: apsw.Connection, *, page_size: int) -> None:
    """Write the first page, because the checksum VFS writes checksums only after that.

    Pages from the log have none yet, and a large copy writes them before the first page.
    """
    copy.pragma("page_size", page_size)
    copy.reserve_bytes("main", checksums.RESERVED_BYTES)
    copy.pragma("user_version", 1)


def _check(partial: Path) -> None:
    """Read all of it, as immutable, so that SQLite creates no log or lock file beside it."""
    name = f"file:{quote(str(partial.absolute()))}?immutable=1"
    copy = apsw.Connection(name, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    try:
        found = checksums.integrity_error(copy)
    finally:
        copy.close()
    if found:
        raise StoreUnavailable(f"the backup does not pass SQLite's integrity check: {found}")
