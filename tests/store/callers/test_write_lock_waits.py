"""A caller's transaction beside other writers: it uses the write lock, with bounded waits."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from penstock.domain.errors import PenstockError, StoreUnavailable, TransactionBusy
from penstock.domain.message.lease import Verb
from penstock.domain.queue.queue import Queue
from penstock.ports.store import Acted, Sent
from penstock.store.commit.requests import RequestKind, StoreRequest
from penstock.store.sqlite import shared_connection as sqlite_plain
from penstock.store.sqlite.shared_connection import LogMoveTimer
from penstock.store.sqlite.write_lock import WriteLock
from penstock.store.store import open_sqlite
from tests.factories import a_new_message, an_act
from tests.store.callers.transaction_kinds import ADD, LOOK, ORDERS
from tests.store.driver import WAIT_S, StoreDriver

SOON_S = 0.1

Connect = Callable[..., sqlite3.Connection]


@pytest.fixture
def kind() -> tuple[str, str]:
    return ("sqlite", "sqlite3")


@pytest.fixture
def connect(where: str) -> Iterator[Connect]:
    made: list[sqlite3.Connection] = []

    def one(timeout: float = WAIT_S, **options: str | None) -> sqlite3.Connection:
        made.append(
            sqlite3.connect(where, timeout=timeout, check_same_thread=False, **options)  # type: ignore[call-overload]
        )
        return made[-1]

    yield one
    for connection in made:
        connection.close()


@pytest.fixture
def other(where: str) -> Iterator[WriteLock]:
    """The write lock of another process."""
    lock = WriteLock(Path(where))
    yield lock
    lock.close()


def send(driver: StoreDriver, mail: Queue, tx: sqlite3.Connection) -> Sent | PenstockError:
    [answer] = driver.store.send_in(tx, [a_new_message(mail, now=driver.now)])
    return answer


def refused(driver: StoreDriver, mail: Queue, tx: sqlite3.Connection) -> str:
    with pytest.raises(TransactionBusy) as refusal:
        send(driver, mail, tx)
    text = str(refusal.value)
    assert refusal.value.code == "transaction_busy"
    assert "locked" not in text
    assert "BEGIN IMMEDIATE" in text
    return text


@pytest.mark.parametrize("has_begun", [False, True])
def test_when_another_connection_writes_for_too_long_the_error_says_what_to_do(
    driver: StoreDriver, connect: Connect, has_begun: bool
) -> None:
    mail = driver.queue()
    application, tx = connect(), connect(SOON_S)
    application.execute(ADD.format("a"))
    if has_begun:
        tx.execute("BEGIN")

    assert "longer than tx waits" in refused(driver, mail, tx)

    application.rollback()
    assert isinstance(send(driver, mail, tx), Sent)
    tx.commit()
    assert len(driver.claim_ids(mail)) == 1


def test_a_message_stays_leased_when_its_completion_times_out(
    driver: StoreDriver, connect: Connect
) -> None:
    mail = driver.queue()
    driver.send(mail)
    [held] = driver.claim(mail)
    application, tx = connect(), connect(SOON_S)
    application.execute(ADD.format("a"))
    act = an_act(Verb.COMPLETE, held, now=driver.now)

    with pytest.raises(TransactionBusy):
        driver.store.act_in(tx, [act])

    application.rollback()
    assert driver.get(held.id) == held
    [answer] = driver.store.act_in(tx, [act])
    assert isinstance(answer, Acted)


def test_a_transaction_that_has_read_stale_data_must_be_run_again(
    driver: StoreDriver, connect: Connect
) -> None:
    mail = driver.queue()
    tx = connect()
    tx.execute("BEGIN")
    tx.execute(LOOK).fetchall()
    driver.send(mail)

    assert "changed since" in refused(driver, mail, tx)

    tx.rollback()
    assert isinstance(send(driver, mail, tx), Sent)


@pytest.mark.parametrize("has_begun", [False, True])
def test_the_busy_timeout_of_the_callers_connection_is_kept(
    driver: StoreDriver, connect: Connect, has_begun: bool
) -> None:
    mail = driver.queue()
    application, tx = connect(), connect(SOON_S)
    if has_begun:
        tx.execute("BEGIN")
    application.execute(ADD.format("a"))
    refused(driver, mail, tx)
    application.rollback()

    send(driver, mail, tx)

    assert tx.execute("PRAGMA busy_timeout").fetchall() == [(SOON_S * 1000,)]


@pytest.mark.parametrize("has_begun", [False, True])
def test_a_transaction_that_does_not_write_yet_waits_for_the_write_lock(
    driver: StoreDriver, connect: Connect, other: WriteLock, has_begun: bool
) -> None:
    mail = driver.queue()
    tx, writing = connect(), connect()
    if has_begun:
        tx.execute("BEGIN")
    other.acquire()
    writing.execute(ADD.format("by the holder of the lock"))
    done = threading.Event()

    def send_it() -> None:
        send(driver, mail, tx)
        done.set()

    thread = threading.Thread(target=send_it)
    thread.start()

    assert not done.wait(SOON_S)
    writing.commit()
    assert not done.wait(SOON_S), "it wrote without the write lock"
    other.release()

    assert done.wait(WAIT_S)
    thread.join(WAIT_S)


def test_the_write_lock_is_waited_for_as_long_as_the_connections_timeout(
    driver: StoreDriver, connect: Connect, other: WriteLock
) -> None:
    mail = driver.queue()
    other.acquire()

    for timeout in (0, SOON_S):
        refused(driver, mail, connect(timeout))

    other.release()
    assert isinstance(send(driver, mail, connect()), Sent)


def test_a_transaction_that_writes_already_does_not_wait_for_the_write_lock(
    driver: StoreDriver, connect: Connect, other: WriteLock
) -> None:
    mail = driver.queue()
    tx = connect()
    tx.execute(ADD.format("a"))
    other.acquire()  # and waits for tx, which would wait for it

    assert isinstance(send(driver, mail, tx), Sent)


def test_the_write_lock_is_released_as_soon_as_the_transaction_writes(
    driver: StoreDriver, connect: Connect, other: WriteLock
) -> None:
    mail = driver.queue()
    tx = connect()

    send(driver, mail, tx)

    assert other.acquire(wait=False)
    other.release()
    tx.commit()


def test_after_a_failed_sync_the_log_is_made_durable_before_a_caller_writes(
    driver: StoreDriver, connect: Connect, other: WriteLock, monkeypatch: pytest.MonkeyPatch
) -> None:
    mail = driver.queue()
    synced: list[Path] = []
    monkeypatch.setattr(sqlite_plain, "_sync_again", synced.append)
    other.acquire()
    other.mark_failed_sync()
    other.release()

    send(driver, mail, connect())

    assert len(synced) == 1
    assert not other.has_failed_sync


def test_a_file_that_the_application_keeps_locked_is_not_opened_and_the_error_says_so(
    tmp_path: Path,
) -> None:
    path = tmp_path / "old.db"
    application = sqlite3.connect(path)
    application.execute(ORDERS)
    application.execute("BEGIN EXCLUSIVE")

    with pytest.raises(StoreUnavailable) as refusal:
        open_sqlite(path, patience_ms=300)

    assert "locked" not in str(refusal.value)
    application.rollback()
    open_sqlite(path).close()
    application.close()


def test_a_log_that_could_not_be_moved_is_moved_after_the_next_commit() -> None:
    moves = LogMoveTimer()
    assert not moves.is_due()

    moves.postpone()

    assert [moves.is_due(), moves.is_due()] == [True, False]


def test_a_send_beside_the_threads_own_transaction_is_refused_at_once(
    driver: StoreDriver, where: str
) -> None:
    mail = driver.queue()
    own = sqlite3.connect(where)
    own.execute(ADD.format("a"))

    with pytest.raises(TransactionBusy, match=r"this thread has an open transaction .* pass it as"):
        driver.store.send([a_new_message(mail, now=driver.now)]).result(WAIT_S)
    own.rollback()
    driver.store.send([a_new_message(mail, now=driver.now)]).result(WAIT_S)

    assert driver.counts(mail).ready == 1
    own.close()


def test_others_wait_for_that_transaction_and_are_not_refused_with_it(
    driver: StoreDriver, where: str
) -> None:
    mail, sent = driver.queue(), []
    own = sqlite3.connect(where)
    own.execute(ADD.format("a"))

    def send_too() -> None:
        sent.extend(driver.store.send([a_new_message(mail, now=driver.now)]).result(WAIT_S))

    others = [threading.Thread(target=send_too) for _ in range(3)]
    for other in others:
        other.start()
    others[0].join(SOON_S)
    own.commit()
    for other in others:
        other.join(WAIT_S)

    assert len(sent) == 3
    assert driver.counts(mail).ready == 3
    own.close()


def test_the_thread_that_holds_the_lock_is_refused_only_its_own_requests(
    driver: StoreDriver, where: str
) -> None:
    mail = driver.queue()
    with ThreadPoolExecutor(1) as pool:
        theirs = pool.submit(
            lambda: StoreRequest(RequestKind.SEND, [a_new_message(mail, now=driver.now)])
        )
        foreign = theirs.result()
    own = sqlite3.connect(where)
    own.execute(ADD.format("a"))

    driver.store._commits._waiting.append(foreign)  # type: ignore[attr-defined]
    with pytest.raises(TransactionBusy):
        driver.store.send([a_new_message(mail, now=driver.now)]).result(WAIT_S)
    own.commit()

    [answer] = foreign.ticket.result(WAIT_S)
    assert isinstance(answer, Sent)
    assert driver.counts(mail).ready == 1
    own.close()
