"""SQLite's log is moved into the database while the writer goes on, and then begins anew."""

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import apsw
import pytest

from penstock.store import log_mover
from penstock.store.log_mover import LogMover, sync_early
from penstock.store.sqlite_log import log_of
from tests.clocks import ManualClock
from tests.store.desk import Desk
from tests.store.recount import check_books

PAGES = 50
LARGE = '"' + "x" * 20_000 + '"'


@pytest.fixture
def backend() -> str:
    return "sqlite"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "penstock.db"


@pytest.fixture
def desk(open_store, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("penstock.store.sqlite.CHECKPOINT_PAGES", PAGES)
    desk = Desk(open_store(), ManualClock())
    yield desk
    desk.store.close()


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch):
    """A mover begins its work only when this is set."""
    gate, move = threading.Event(), LogMover._move

    def wait_and_move(mover: LogMover) -> None:
        assert gate.wait(30)
        move(mover)

    monkeypatch.setattr(LogMover, "_move", wait_and_move)
    yield gate
    gate.set()


@pytest.fixture
def moves(monkeypatch: pytest.MonkeyPatch) -> list[LogMover]:
    """Those that were begun."""
    begun: list[LogMover] = []
    begin = LogMover.begin

    def noted(mover: LogMover) -> None:
        begun.append(mover)
        begin(mover)

    monkeypatch.setattr(LogMover, "begin", noted)
    return begun


def send_until(desk: Desk, mail, is_enough) -> list[str]:
    sent: list[str] = []
    while not is_enough():
        assert len(sent) < 2_000, "that does not end"
        sent.append(desk.send(mail, body=LARGE))
    return sent


def database_of(desk: Desk) -> Path:
    def ask(session: Any) -> str:
        return str(session.db.connection.db_filename("main"))

    return Path(desk.read(ask))


def test_sends_are_answered_while_the_log_is_moved(desk, gate, moves):
    mail = desk.queue()
    send_until(desk, mail, lambda: moves)

    more = [desk.send(mail, body=LARGE) for _ in range(20)]

    assert moves[0].is_moving
    assert {desk.get(one).id for one in more} == set(more)


def test_a_log_that_was_moved_begins_anew(desk, moves):
    mail, log = desk.queue(), log_of(database_of(desk))

    send_until(desk, mail, lambda: len(moves) >= 20)

    written = desk.counts(mail).ready * len(LARGE)
    assert log.stat().st_size < written / 2, "it only grew"


def test_what_was_moved_is_whole(desk, moves, open_store):
    mail = desk.queue()
    sent = send_until(desk, mail, lambda: len(moves) >= 6)
    path = database_of(desk)
    desk.store.close()

    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    assert db.execute("PRAGMA integrity_check").get == "ok"
    size, whole = db.pragma("page_size"), path.read_bytes()
    pages = [whole[start : start + size] for start in range(0, len(whole), size)]
    assert all(db.execute("SELECT verify_checksum(?)", (page,)).get == 1 for page in pages)
    db.close()

    desk.store = open_store()
    assert desk.claim_ids(mail, limit=len(sent)) == sent
    check_books(desk)


def test_a_move_that_fails_is_the_end_of_the_connection_and_of_nothing_else(
    desk, moves, monkeypatch
):
    mail = desk.queue()

    def fail(mover: LogMover) -> None:
        mover._error = apsw.IOError("the disk is in trouble")

    with monkeypatch.context() as trouble:
        trouble.setattr(LogMover, "_move", fail)
        sent = send_until(desk, mail, lambda: moves)
        moves[0].wait()
        sent.append(desk.send(mail))  # stands: it was synced by itself

    sent.append(desk.send(mail))
    connections = len({id(mover) for mover in moves})
    sent += send_until(desk, mail, lambda: len({id(mover) for mover in moves}) > connections)
    assert desk.claim_ids(mail, limit=len(sent)) == sent


def test_who_closes_waits_for_the_mover(desk, gate, moves):
    mail = desk.queue()
    send_until(desk, mail, lambda: moves)
    closing = threading.Thread(target=desk.store.close)

    closing.start()
    closing.join(0.1)
    was_waiting = closing.is_alive()
    gate.set()
    closing.join(30)

    assert was_waiting
    assert not closing.is_alive()


def test_behind_a_reader_it_is_not_tried_at_every_commit(desk, moves):
    mail = desk.queue()
    reader = apsw.Connection(str(database_of(desk)), flags=apsw.SQLITE_OPEN_READONLY)
    reader.execute("BEGIN; SELECT count(*) FROM message").fetchall()
    send_until(desk, mail, lambda: moves)
    moves[0].wait()
    moves.clear()

    for _ in range(PAGES // 10):  # ten pages are less than each of these fills
        desk.send(mail)

    assert len(moves) <= 1
    reader.close()


def test_where_a_failed_sync_may_be_told_to_one_only_the_writer_waits(desk, moves, monkeypatch):
    monkeypatch.setattr(LogMover, "is_beside", False)
    mail = desk.queue()

    send_until(desk, mail, lambda: moves)

    assert all(mover.is_idle for mover in moves)


# --- the sync ahead of SQLite's ---


def test_a_sync_ahead_leaves_sqlites_locks_alone(path):
    db = apsw.Connection(str(path))
    db.execute("CREATE TABLE t (x); BEGIN IMMEDIATE; INSERT INTO t VALUES (1)")

    sync_early(path)

    other = f"import sqlite3; sqlite3.connect({str(path)!r}, timeout=0).execute('BEGIN IMMEDIATE')"
    done = subprocess.run(
        [sys.executable, "-c", other], capture_output=True, text=True, check=False
    )
    assert "locked" in done.stderr
    db.close()


def test_a_sync_ahead_that_fails_is_told(path, monkeypatch):
    db = apsw.Connection(str(path))
    db.execute("CREATE TABLE t (x)")

    def fail(descriptor: int) -> None:
        raise OSError(errno.EIO, "the disk is in trouble")

    monkeypatch.setattr(os, "fdatasync", fail)

    with pytest.raises(OSError, match="trouble"):
        sync_early(path)
    db.close()


def test_a_descriptor_that_was_closed_meanwhile_is_no_trouble(path, monkeypatch):
    db = apsw.Connection(str(path))
    db.execute("CREATE TABLE t (x)")
    tried: list[int] = []

    def gone(descriptor: int) -> None:
        tried.append(descriptor)
        raise OSError(errno.EBADF, "closed")

    monkeypatch.setattr(os, "fdatasync", gone)

    sync_early(path)

    assert tried
    db.close()


def test_the_error_of_a_sync_ahead_reaches_the_writer(desk, moves, monkeypatch, caplog):
    mail = desk.queue()

    def fail(path: Path) -> None:
        raise OSError(errno.EIO, "the disk is in trouble")

    monkeypatch.setattr(log_mover, "sync_early", fail)
    send_until(desk, mail, lambda: moves)
    moves[0].wait()
    desk.send(mail)

    assert "the log could not be moved" in caplog.text
