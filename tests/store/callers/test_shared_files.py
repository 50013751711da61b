"""A SQLite file that an application and a store have open in one process, and in several."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from penstock.domain.errors import StoreRefused
from penstock.store.sqlite import shared_connection as sqlite_plain
from penstock.store.sqlite.file_header import reserved_bytes
from penstock.store.sqlite.shared_connection import is_plain, move_log
from penstock.store.store import open_sqlite
from tests.clocks import ManualClock
from tests.factories import a_new_message
from tests.store.callers.transaction_kinds import ADD, CallerTransaction
from tests.store.driver import WAIT_S, StoreDriver

# The bytes that every process that has the database open has locked.
IS_OPEN = """
import fcntl, sys
with open(sys.argv[1], "r+b") as file:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 510, 0x40000002)
    except OSError:
        print("yes")
    else:
        print("no")
"""
CAN_WRITE = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None)
try:
    db.execute("BEGIN IMMEDIATE")
except sqlite3.OperationalError as error:
    print(error)
else:
    print("yes")
"""


@pytest.fixture
def kind() -> tuple[str, str]:
    return ("sqlite", "sqlite3")


def others_can_write(path: str) -> str:
    return ask_another_process(CAN_WRITE, path)


def ask_another_process(question: str, path: str) -> str:
    command = [sys.executable, "-c", question, path]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_while_the_caller_writes_the_store_waits(
    driver: StoreDriver, transaction: CallerTransaction
) -> None:
    mail = driver.queue()
    transaction.run(ADD.format("a"))
    sent = threading.Event()

    def send() -> None:
        driver.send(mail)
        sent.set()

    thread = threading.Thread(target=send)
    thread.start()
    assert not sent.wait(0.2)
    transaction.commit()
    thread.join(WAIT_S)

    assert sent.is_set()
    assert len(driver.claim_ids(mail)) == 1


def test_reading_the_file_drops_no_locks(where: str, transaction: CallerTransaction) -> None:
    transaction.run(ADD.format("a"))

    assert is_plain(Path(where))
    assert reserved_bytes(Path(where)) == 0

    assert ask_another_process(IS_OPEN, where) == "yes"  # or others might remove its log
    assert others_can_write(where) == "database is locked"
    transaction.commit()
    assert others_can_write(where) == "yes"


def test_a_store_that_opens_beside_a_transaction_drops_no_locks(
    driver: StoreDriver, where: str, transaction: CallerTransaction
) -> None:
    mail = driver.queue()
    transaction.send(driver.store, [a_new_message(mail, now=driver.now)])
    driver.read(lambda s: s.queues.count())

    assert others_can_write(where) == "database is locked"
    transaction.commit()


def test_callers_leave_the_log_to_the_store(
    driver: StoreDriver, where: str, transaction: CallerTransaction, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_plain, "COMMITS_PER_MOVE", 10)
    mail = driver.queue()
    move_log(Path(where))
    size = Path(where).stat().st_size
    before = set(threading.enumerate())

    for _ in range(10):
        transaction.send(driver.store, [a_new_message(mail, now=driver.now, body="x" * 10_000)])
        transaction.commit()
    for thread in set(threading.enumerate()) - before:
        thread.join(WAIT_S)

    assert transaction.run("PRAGMA wal_autocheckpoint") == [(0,)]
    assert Path(where).stat().st_size > size + 50_000  # it has come into the database


def test_the_callers_own_kinds_of_rows_and_texts_do_not_matter(
    driver: StoreDriver, where: str
) -> None:
    mail = driver.queue(ordering="group")
    driver.send(mail, group="é")
    tx = sqlite3.connect(where)
    tx.row_factory = sqlite3.Row
    tx.text_factory = bytes

    driver.store.send_in(tx, [a_new_message(mail, now=driver.now, group="é", dedup_key="k")])
    tx.commit()

    assert tx.row_factory is sqlite3.Row
    assert tx.text_factory is bytes
    tx.close()
    [message] = driver.claim(mail, 10)  # the second one is blocked
    assert message.group == "é"


def test_a_new_file_can_be_made_without_checksums(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "new.db"
    store = open_sqlite(path, checksums=False)
    driver = StoreDriver(store, ManualClock())
    mail = driver.queue()
    with sqlite3.connect(path) as tx:
        store.send_in(tx, [a_new_message(mail, now=driver.now)])
    tx.close()

    assert len(driver.claim_ids(mail)) == 1
    store.close()
    assert is_plain(path)


def test_a_file_with_checksums_stays_one(tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    open_sqlite(path).close()

    assert not is_plain(path)
    with pytest.raises(StoreRefused, match="only a new file"):
        open_sqlite(path, checksums=False)


def test_a_file_in_the_old_journal_mode_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    application = sqlite3.connect(path)
    application.execute("CREATE TABLE t (a)")
    assert application.execute("PRAGMA journal_mode").fetchall() == [("delete",)]

    store = open_sqlite(path)
    driver = StoreDriver(store, ManualClock())
    mail = driver.queue()
    store.send_in(application, [a_new_message(mail, now=driver.now)])
    application.commit()

    assert len(driver.claim_ids(mail)) == 1
    application.close()
    store.close()


def test_everything_works_again_after_the_store_was_reopened(
    open_store, driver: StoreDriver, where: str
) -> None:
    mail = driver.queue()
    driver.send(mail)
    driver.store.close()

    store = open_store()
    again = StoreDriver(store, driver.clock)
    assert len(again.claim_ids(mail)) == 1
    store.close()
