"""An operator's decision: continue without what follows the damage in the log.

A copy of the log is kept beside the store.  Then the log is truncated at the damage.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import closing
from pathlib import Path

import apsw
import msgspec

from penstock.domain.errors import InvalidRequest, PenstockError, StoreDamaged, StoreUnavailable
from penstock.store.damage.log_damage import LogEnd, copy_log, find_log_end
from penstock.store.damage.log_frames import LogFile
from penstock.store.damage.salvage import exclusive_access
from penstock.store.sqlite import checksums
from penstock.store.sqlite.connection import SqliteDatabase, end_of_log
from penstock.store.sqlite.log_sync import log_of


class AcceptedLoss(msgspec.Struct, frozen=True):
    kept: str  # the log as it was
    offset: int
    commits: int  # that are lost


def accept_loss(path: Path) -> AcceptedLoss:
    """Raises InvalidRequest if the log is not damaged, StoreDamaged if the rest is inconsistent."""
    if not path.exists():
        raise InvalidRequest(f"there is no store at {path}")
    try:
        with exclusive_access(path):
            end = log_end(path)
            if end is None or not end.is_damage:
                raise InvalidRequest(
                    f"the log of {path} is not damaged: there is nothing to accept"
                )
            _check_rest(path, end)
            kept = copy_log(log_of(path), "damaged")
            _cut(log_of(path), end.offset)
    except OSError as error:
        raise StoreUnavailable(f"cannot cut the log of {path}: {error}") from error
    return AcceptedLoss(str(kept), end.offset, end.commits)


def log_end(path: Path) -> LogEnd | None:
    """The part of the log that SQLite does not read, even if it cannot open the store."""
    try:
        db = SqliteDatabase(path)
    except PenstockError:
        return find_log_end(path)
    try:
        return end_of_log(db, path)
    finally:
        db.abandon()


def _check_rest(path: Path, end: LogEnd) -> None:
    """Raises StoreDamaged if the store would differ from its state before the damage."""
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".doctor-") as folder:
        copy = Path(folder) / path.name
        shutil.copyfile(path, copy)
        shutil.copyfile(log_of(path), log_of(copy))
        wrong = _pages_from_behind(copy, end)
        os.truncate(log_of(copy), end.offset)
        if not wrong:
            wrong = _wrong(copy)
    if wrong:
        raise StoreDamaged(
            f"the store is not consistent without what follows the damage: {wrong}. Restore a "
            "backup, or run `penstock doctor --salvage NEW_STORE`"
        )


def _pages_from_behind(copy: Path, end: LogEnd) -> str:
    """A text if the database has pages from behind the damage, which earlier ones do not match."""
    try:
        log = LogFile(log_of(copy))
    except ValueError:
        return "it is unknown which pages were moved out of the log"
    with closing(log), copy.open("rb") as database:
        size = log.header.page_size
        before: set[int] = set()
        for no in range(1, log.count + 1):
            frame = log.frame(no)
            if log.offset(no) < end.offset:
                before.add(frame.page_no)
            elif frame.page_no not in before and frame.salts == log.header.salts:
                database.seek((frame.page_no - 1) * size)
                # Compared without the checksum, which pages in the log do not have.
                if database.read(size)[:-8] == frame.page[:-8]:
                    return f"page {frame.page_no} of the database comes from behind it"
    return ""


def _wrong(copy: Path) -> str:
    checksums.turn_on()
    db = apsw.Connection(str(copy))
    try:
        return checksums.integrity_error(db)
    except apsw.Error as error:
        return str(error)
    finally:
        db.close()


def _cut(log: Path, offset: int) -> None:
    with log.open("r+b") as file:
        file.truncate(offset)
        os.fsync(file.fileno())
