"""Backups: consistent at one instant, checked, and complete or absent."""

from __future__ import annotations

import threading
from pathlib import Path

import apsw
import pytest

from penstock.domain.errors import InvalidRequest, StoreUnavailable
from penstock.store.maintenance.backup import STEP_PAGES, backup
from penstock.store.sqlite import checksums
from penstock.store.sqlite.connection import SqliteDatabase

PAGE = 4096


def ignore(done: int, total: int) -> None:
    pass


@pytest.fixture
def store(tmp_path: Path) -> SqliteDatabase:
    """A database with more pages than a step copies, all of them still in the log."""
    db = SqliteDatabase(tmp_path / "penstock.db")
    db.connection.pragma("wal_autocheckpoint", 0)
    db.script("CREATE TABLE pair (one INTEGER PRIMARY KEY, two INTEGER, filling BLOB)")
    with db.connection:
        for number in range(STEP_PAGES + 500):
            fill(db.connection, number)
    return db


def fill(db: apsw.Connection, number: int) -> None:
    db.execute("INSERT INTO pair VALUES (?, ?, zeroblob(3500))", (number, number))


def test_a_backup_is_whole_and_has_checksums(store, tmp_path):
    steps_seen: list[tuple[int, int]] = []

    size = backup(
        tmp_path / "penstock.db",
        tmp_path / "copy.db",
        progress=lambda *step: steps_seen.append(step),
    )

    copy = SqliteDatabase(tmp_path / "copy.db", read_only=True)
    assert copy.connection.execute("SELECT count(*) FROM pair").get == STEP_PAGES + 500
    assert checksums.has_checksums(tmp_path / "copy.db")
    assert size == (tmp_path / "copy.db").stat().st_size
    assert steps_seen[-1][0] == steps_seen[-1][1] == size // PAGE
    assert len(steps_seen) > 1
    copy.close()


def test_a_backup_ends_although_the_store_is_written_to_all_the_time(store, tmp_path):
    """The copy is one snapshot: a pair that changes together is never half changed."""
    is_over = threading.Event()
    began = threading.Semaphore(0)

    def write() -> None:
        db = SqliteDatabase(tmp_path / "penstock.db")
        while not is_over.is_set():
            with db.connection:
                db.connection.execute("UPDATE pair SET two = two + 1")
            began.release()
        db.close()

    writer = threading.Thread(target=write)
    writer.start()
    began.acquire()
    steps: list[int] = []

    def progress(done: int, total: int) -> None:
        steps.append(done)
        assert began.acquire(timeout=30)  # at least one commit between two steps

    try:
        backup(tmp_path / "penstock.db", tmp_path / "copy.db", progress=progress)
    finally:
        is_over.set()
        writer.join()

    copy = SqliteDatabase(tmp_path / "copy.db", read_only=True)
    assert copy.connection.execute("SELECT count(DISTINCT two - one) FROM pair").get == 1
    assert steps == sorted(set(steps)), "it started over"
    copy.close()


def test_a_damaged_store_is_not_copied(store, tmp_path):
    store.checkpoint()
    store.close()
    with (tmp_path / "penstock.db").open("r+b") as file:
        file.seek(700 * PAGE + 50)
        file.write(b"damage")

    with pytest.raises(StoreUnavailable):
        backup(tmp_path / "penstock.db", tmp_path / "copy.db", progress=ignore)

    assert [path.name for path in tmp_path.iterdir() if "copy" in path.name] == []


def test_a_backup_that_is_broken_off_leaves_nothing_and_spoils_nothing(store, tmp_path):
    (tmp_path / "copy.db").write_text("the last good one")

    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        backup(tmp_path / "penstock.db", tmp_path / "copy.db", replace=True, progress=interrupt)

    assert (tmp_path / "copy.db").read_text() == "the last good one"
    assert [path.name for path in tmp_path.iterdir() if "partial" in path.name] == []


def test_only_its_owner_can_read_a_backup(store, tmp_path):
    backup(tmp_path / "penstock.db", tmp_path / "copy.db", progress=ignore)

    assert (tmp_path / "copy.db").stat().st_mode & 0o077 == 0


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """A store without checksums, of some pages."""
    db = apsw.Connection(str(tmp_path / "plain.db"), vfs="unix")
    db.pragma("journal_mode", "wal")
    db.execute("CREATE TABLE pair (one INTEGER PRIMARY KEY, two INTEGER, filling BLOB)")
    for number in range(20):
        fill(db, number)
    db.close()
    return tmp_path / "plain.db"


def test_a_copy_without_checksums_is_made_of_a_store_without(plain, tmp_path):
    backup(plain, tmp_path / "copy.db", progress=ignore)

    assert not checksums.has_checksums(tmp_path / "copy.db")


def test_an_inconsistent_copy_is_deleted(plain, tmp_path):
    with plain.open("r+b") as file:
        file.seek(5 * PAGE)
        file.write(b"\xff" * 100)

    with pytest.raises(StoreUnavailable, match="integrity check"):
        backup(plain, tmp_path / "copy.db", progress=ignore)

    assert not (tmp_path / "copy.db").exists()


@pytest.mark.parametrize(
    ("source", "target"),
    [("nothing.db", "copy.db"), ("penstock.db", "penstock.db"), ("penstock.db", "no/folder.db")],
)
def test_an_invalid_backup_is_refused(store, tmp_path, source, target):
    before = (tmp_path / "penstock.db").stat().st_ino

    with pytest.raises(InvalidRequest):
        backup(tmp_path / source, tmp_path / target, replace=True, progress=ignore)

    assert (tmp_path / "penstock.db").stat().st_ino == before
    assert not (tmp_path / "nothing.db").exists()
