"""SQLite's log is moved into the database while the writer commits, and then restarted."""

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import apsw
import pytest

from penstock.store.sqlite import full_disk, log_mover
from penstock.store.sqlite.log_mover import LogMover, sync_ahead
from penstock.store.sqlite.log_sync import log_of
from penstock.store.store import open_sqlite
from tests.clocks import ManualClock
from tests.store.counter_checks import check_counters
from tests.store.driver import StoreDriver

PAGES = 50
FRAME_BYTES = 4096 + 24
LARGE = '"' + "x" * 20_000 + '"'


@pytest.fixture
def backend() -> str:
    return "sqlite"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "penstock.db"


@pytest.fixture
def driver(open_store, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("penstock.store.sqlite.connection.CHECKPOINT_PAGES", PAGES)
    driver = StoreDriver(open_store(), ManualClock())
    yield driver
    driver.store.close()


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch):
    """A mover begins its work only when this is set."""
    gate, move = threading.Event(), LogMover._move

    def wait_and_move(mover: LogMover, db: apsw.Connection) -> None:
        assert gate.wait(30)
        move(mover, db)

    monkeypatch.setattr(LogMover, "_move", wait_and_move)
    yield gate
    gate.set()


@pytest.fixture
def moves(monkeypatch: pytest.MonkeyPatch) -> list[LogMover]:
    """One entry per call of `begin`."""
    begun: list[LogMover] = []
    begin = LogMover.begin

    def noted(mover: LogMover) -> bool:
        begun.append(mover)
        return begin(mover)

    monkeypatch.setattr(LogMover, "begin", noted)
    return begun


def _fail(error: Exception):
    def fail(*_: object) -> None:
        raise error

    return fail


def send_until(driver: StoreDriver, mail, is_enough, *, in_step_with=()) -> list[str]:
    """`in_step_with`: nothing is sent while these move the log, which would make it longer."""
    sent: list[str] = []
    while not is_enough():
        assert len(sent) < 2_000, "it does not end"
        sent.append(driver.send(mail, body=LARGE))
        if in_step_with and in_step_with[-1].is_moving:
            wait(in_step_with[-1])
    return sent


def database_of(driver: StoreDriver) -> Path:
    def ask(session: Any) -> str:
        return str(session.db.connection.db_filename("main"))

    return Path(driver.read(ask))


def test_sends_are_answered_while_the_log_is_moved(driver, gate, moves):
    mail = driver.queue()
    send_until(driver, mail, lambda: moves)

    more = [driver.send(mail, body=LARGE) for _ in range(20)]

    assert moves[0].is_moving
    assert {driver.get(one).id for one in more} == set(more)


def test_a_log_that_was_moved_is_restarted(driver, moves):
    mail, log = driver.queue(), log_of(database_of(driver))

    send_until(driver, mail, lambda: len(moves) >= 20, in_step_with=moves)

    written = driver.counts(mail).ready * len(LARGE)
    assert log.stat().st_size < written / 2, "it only grew"


def test_a_moved_log_is_complete(driver, moves, open_store):
    mail = driver.queue()
    sent = send_until(driver, mail, lambda: len(moves) >= 6)
    path = database_of(driver)
    driver.store.close()

    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    assert db.execute("PRAGMA integrity_check").get == "ok"
    size, whole = db.pragma("page_size"), path.read_bytes()
    pages = [whole[start : start + size] for start in range(0, len(whole), size)]
    assert all(db.execute("SELECT verify_checksum(?)", (page,)).get == 1 for page in pages)
    db.close()

    driver.store = open_store()
    assert driver.claim_ids(mail, limit=len(sent)) == sent
    check_counters(driver)


def fail_to_sync(path: str) -> None:
    raise OSError(errno.EIO, "the disk is in trouble")


def fail_a_move(driver: StoreDriver, mail, moves, monkeypatch) -> list[str]:
    """After this a move has failed, and the writer has not noticed yet."""
    with monkeypatch.context() as trouble:
        trouble.setattr(log_mover, "sync_ahead", fail_to_sync)
        sent = send_until(driver, mail, lambda: moves)
        wait(moves[0])
    return sent


def wait(mover: LogMover) -> None:
    assert mover._thread is not None
    mover._thread.join(30)
    assert not mover.is_moving


def has_failed_sync(path: Path) -> bool:
    return path.with_name(path.name + "-turn").read_bytes().startswith(b"!")


def test_a_move_that_fails_is_the_end_of_the_connection_and_of_nothing_else(
    driver, moves, monkeypatch, caplog
):
    mail, path = driver.queue(), database_of(driver)
    sent = fail_a_move(driver, mail, moves, monkeypatch)

    sent += [driver.send(mail), driver.send(mail)]

    assert "the disk is in trouble" in caplog.text
    assert not has_failed_sync(path), "the log is durable"
    failed = moves[0]
    sent += send_until(driver, mail, lambda: moves[-1] is not failed)
    assert driver.claim_ids(mail, limit=len(sent)) == sent


def test_a_failed_move_is_marked_before_the_writer_notices_it(driver, moves, monkeypatch):
    mail, path = driver.queue(), database_of(driver)
    sent = fail_a_move(driver, mail, moves, monkeypatch)
    assert has_failed_sync(path)

    other = StoreDriver(
        open_sqlite(path), driver.clock
    )  # makes the log durable, when the first has closed it

    assert not has_failed_sync(path)
    sent.append(other.send(mail))
    assert driver.claim_ids(mail, limit=len(sent)) == sent
    other.store.close()


def test_a_store_that_closes_after_a_failed_move_leaves_the_log_to_the_next_one(
    driver, moves, monkeypatch, open_store
):
    mail, path = driver.queue(), database_of(driver)
    sent = fail_a_move(driver, mail, moves, monkeypatch)
    driver.store.readers.close_sessions()  # the last one to close moves the log, if it is a writer

    driver.store.close()

    assert has_failed_sync(path)
    assert log_of(path).stat().st_size > 0, "its content may not be in the database"
    driver.store = open_store()
    assert driver.claim_ids(mail, limit=len(sent)) == sent


def test_a_store_whose_move_fails_while_it_closes_leaves_the_log_to_the_next_one(
    driver, moves, monkeypatch
):
    mail, path = driver.queue(), database_of(driver)
    is_syncing, may_fail = threading.Event(), threading.Event()

    def fail_in_the_end(path: str) -> None:
        is_syncing.set()
        assert may_fail.wait(30)
        fail_to_sync(path)

    monkeypatch.setattr(log_mover, "sync_ahead", fail_in_the_end)
    send_until(driver, mail, lambda: moves)
    assert is_syncing.wait(30)
    driver.store.readers.close_sessions()
    closing = threading.Thread(target=driver.store.close)
    closing.start()
    closing.join(0.1)

    may_fail.set()
    closing.join(30)

    assert has_failed_sync(path)
    assert log_of(path).stat().st_size > 0


def test_closing_waits_for_the_mover(driver, gate, moves):
    mail = driver.queue()
    send_until(driver, mail, lambda: moves)
    closing = threading.Thread(target=driver.store.close)

    closing.start()
    closing.join(0.1)
    was_waiting = closing.is_alive()
    gate.set()
    closing.join(30)

    assert was_waiting
    assert not closing.is_alive()


def test_behind_a_reader_a_move_is_not_tried_at_every_commit(driver, moves):
    mail, log = driver.queue(), log_of(database_of(driver))
    reader = apsw.Connection(str(database_of(driver)), flags=apsw.SQLITE_OPEN_READONLY)
    reader.execute("BEGIN; SELECT count(*) FROM message").fetchall()
    send_until(driver, mail, lambda: moves)
    wait(moves[0])
    driver.send(mail)
    tries = len(moves)

    for _ in range(PAGES // 20):  # a small one fills less than ten pages
        driver.send(mail)

    assert len(moves) == tries
    reader.close()
    sent = send_until(driver, mail, lambda: len(moves) > tries + 20, in_step_with=moves)
    assert log.stat().st_size < len(sent) * len(LARGE) / 2, "it only grew"


def test_a_log_that_another_connection_restarted_is_moved_as_early_as_ever(driver, moves):
    mail, path = driver.queue(), database_of(driver)
    reader = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    reader.execute("BEGIN; SELECT count(*) FROM message").fetchall()
    long = 10 * PAGES * FRAME_BYTES
    send_until(driver, mail, lambda: log_of(path).stat().st_size > long)
    while moves[-1].has_begun:
        driver.send(mail)  # notices it
    reader.close()
    other = apsw.Connection(str(path))
    other.pragma("schema_version")  # a connection that has read nothing does not see the log
    other.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    moves.clear()

    for _ in range(PAGES // 4):  # a large one fills more than four pages
        driver.send(mail, body=LARGE)

    assert moves
    other.close()


@pytest.mark.parametrize(
    "trouble",
    [
        pytest.param((LogMover, "is_possible", False), id="not on this system"),
        pytest.param((log_mover, "_connect", _fail(apsw.CantOpenError("files"))), id="no files"),
        pytest.param((threading.Thread, "start", _fail(RuntimeError("threads"))), id="no threads"),
    ],
)
def test_without_a_mover_the_writer_moves_the_log(driver, moves, monkeypatch, trouble):
    mail, path = driver.queue(), database_of(driver)
    monkeypatch.setattr(*trouble)

    send_until(driver, mail, lambda: len(moves) >= 20, in_step_with=moves)

    assert not any(mover.is_moving for mover in moves)
    assert not has_failed_sync(path)
    written = driver.counts(mail).ready * len(LARGE)
    assert log_of(path).stat().st_size < written / 2, "it only grew"
    monkeypatch.undo()


# --- the sync ahead of SQLite's ---


def test_a_sync_ahead_leaves_sqlites_locks_alone(path):
    db = apsw.Connection(str(path))
    db.execute("CREATE TABLE t (x); BEGIN IMMEDIATE; INSERT INTO t VALUES (1)")

    sync_ahead(str(path))

    other = f"import sqlite3; sqlite3.connect({str(path)!r}, timeout=0).execute('BEGIN IMMEDIATE')"
    done = subprocess.run(
        [sys.executable, "-c", other], capture_output=True, text=True, check=False
    )
    assert "locked" in done.stderr
    db.close()


def test_a_sync_ahead_that_fails_is_reported(path, monkeypatch):
    db = apsw.Connection(str(path))
    db.execute("CREATE TABLE t (x)")

    def fail(descriptor: int) -> None:
        raise OSError(errno.EIO, "the disk is in trouble")

    monkeypatch.setattr(os, "fdatasync", fail)

    with pytest.raises(OSError, match="trouble"):
        sync_ahead(str(path))
    db.close()


def test_a_descriptor_that_was_closed_meanwhile_is_ignored(path, monkeypatch):
    db = apsw.Connection(str(path))
    db.execute("CREATE TABLE t (x)")
    tried: list[int] = []

    def gone(descriptor: int) -> None:
        tried.append(descriptor)
        raise OSError(errno.EBADF, "closed")

    monkeypatch.setattr(os, "fdatasync", gone)

    sync_ahead(str(path))

    assert tried
    db.close()


def test_without_a_list_of_open_files_nothing_is_synced_ahead(path, monkeypatch):
    db = apsw.Connection(str(path))
    db.execute("CREATE TABLE t (x)")
    monkeypatch.setattr(full_disk, "_DESCRIPTORS", "/nowhere")
    monkeypatch.setattr(os, "fdatasync", _fail(AssertionError("synced")))

    sync_ahead(str(path))

    db.close()
