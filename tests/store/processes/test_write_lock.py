"""The write lock between processes: it is fair, blocks no event loop, and waits are bounded."""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.domain.errors import PenstockError, QueueNotFound, StoreUnavailable
from penstock.ports.store import Sent, Session
from penstock.store.sqlite import shared_connection as sqlite_plain
from penstock.store.sqlite.busy_wait import BusyWait
from penstock.store.sqlite.shared_connection import LogMoveTimer
from penstock.store.sqlite.write_lock import WriteLock
from penstock.store.store import SqlStore
from tests.clocks import ManualClock
from tests.factories import a_new_message
from tests.store.driver import StoreDriver
from tests.store.processes.peer import Peer
from tests.store.storage_failures import TOO_BIG, no_room
from tests.support.waiting import eventually

WAIT_S = 30
SOON_MS = 300

Start = Callable[[], Peer]
Another = Callable[..., SqlStore]


@pytest.fixture
def places(folder: Path) -> Iterator[Callable[..., WriteLock]]:
    made: list[WriteLock] = []

    def one(**options: Any) -> WriteLock:
        made.append(WriteLock(folder / "penstock.db", **options))
        return made[-1]

    yield one
    for lock in made:
        lock.close()


def in_thread(do: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append(do()))
    thread.start()
    return thread, answers


def until_a_writer_waits(folder: Path) -> None:
    file = os.open(folder / "penstock.db-next", os.O_RDWR)
    try:
        for _ in range(10_000):
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return
            fcntl.flock(file, fcntl.LOCK_UN)
            threading.Event().wait(0.001)
    finally:
        os.close(file)
    pytest.fail("no writer waits")


def test_a_process_that_had_the_lock_queues_up_behind_those_that_wait(
    places: Any, folder: Path
) -> None:
    busy, patient = places(), places()
    busy.acquire()
    thread, answers = in_thread(patient.acquire)
    eventually(lambda: patient._thread is not None)  # it has tried without waiting, and queues up
    until_a_writer_waits(folder)

    busy.release()

    assert not busy.acquire(wait=False)
    thread.join(WAIT_S)
    assert answers == [True]
    assert not busy.acquire(wait=False)
    patient.release()
    assert busy.acquire(wait=False)


def test_a_wait_that_timed_out_does_not_block_the_others(places: Any, folder: Path) -> None:
    busy, hasty, other = places(), places(patience_ms=1), places()
    busy.acquire()
    with pytest.raises(StoreUnavailable):
        hasty.acquire()

    busy.release()

    assert other.acquire()
    other.release()
    assert places().acquire()


def test_a_lock_can_be_waited_for_again_after_a_timeout(places: Any) -> None:
    busy, hasty = places(), places(patience_ms=SOON_MS)
    busy.acquire()
    with pytest.raises(StoreUnavailable):
        hasty.acquire()
    thread, answers = in_thread(lambda: hasty.acquire(patience_ms=WAIT_S * 1000))

    busy.release()

    thread.join(WAIT_S)
    assert answers == [True]


def test_a_file_system_without_locks_is_used_with_a_warning(
    places: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr("penstock.store.sqlite.write_lock.fcntl.flock", no_locks)

    with caplog.at_level(logging.WARNING):
        lock = places()

    assert lock.acquire()
    assert lock.enter()
    assert not lock.has_failed_sync
    assert "one process only" in caplog.text


def test_a_stopped_process_is_waited_for_and_then_reported(
    start: Start, open_another: Another
) -> None:
    driver = StoreDriver(open_another(patience_ms=SOON_MS), ManualClock())
    mail = driver.queue()
    peer = start().ready()
    peer.send("stop_with_the_lock")
    assert peer.answer() == "stopping"

    with pytest.raises(StoreUnavailable) as refused:
        driver.submit_send(mail).result(WAIT_S)

    assert "lock" not in str(refused.value)
    os.kill(peer.pid, signal.SIGCONT)
    assert peer.answer() == "continued"
    assert driver.send(mail)


def test_a_loop_keeps_running_while_another_process_has_the_write_lock(
    open_another: Another, places: Any
) -> None:
    driver = StoreDriver(open_another(), ManualClock())
    mail = driver.queue()
    other = places()
    other.acquire()

    async def send() -> list[Sent | PenstockError]:
        ticket = driver.store.send([a_new_message(mail, now=driver.now)])
        for _ in range(100):
            await asyncio.sleep(0)  # it would block here
        other.release()
        return await ticket

    [sent] = asyncio.run(asyncio.wait_for(send(), WAIT_S))

    assert isinstance(sent, Sent)


def test_a_loop_keeps_running_while_an_application_writes(
    open_another: Another, stranger: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: set[tuple[str, bool]] = set()
    wait = BusyWait.wait

    def noted(patience: BusyWait, times: int) -> bool:
        keeps_waiting = wait(patience, times)
        waits.add((threading.current_thread().name, keeps_waiting))
        return keeps_waiting

    monkeypatch.setattr(BusyWait, "wait", noted)
    driver = StoreDriver(open_another(), ManualClock())
    mail = driver.queue()
    other = stranger()
    other.execute("BEGIN IMMEDIATE")

    async def send() -> list[Sent | PenstockError]:
        ticket = driver.store.send([a_new_message(mail, now=driver.now)])
        for _ in range(100):
            await asyncio.sleep(0)
        other.execute("COMMIT")
        return await ticket

    [sent] = asyncio.run(asyncio.wait_for(send(), WAIT_S))

    assert isinstance(sent, Sent)
    assert (threading.current_thread().name, True) not in waits


def test_an_application_that_keeps_the_store_locked_is_reported_with_our_error(
    open_another: Another,
    stranger: Callable[[], Any],
    places: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("penstock.store.sqlite.connection.BUSY_MS", 10)
    driver = StoreDriver(open_another(patience_ms=SOON_MS), ManualClock())
    mail = driver.queue()
    other = stranger()
    other.execute("BEGIN IMMEDIATE")

    with pytest.raises(StoreUnavailable) as refused:
        driver.submit_send(mail).result(WAIT_S)

    assert "locked" not in str(refused.value)
    waiting = places()
    assert waiting.acquire(wait=False), "a wait that timed out does not block others"
    waiting.release()
    other.execute("ROLLBACK")
    assert driver.send(mail)


def test_a_transaction_without_the_write_lock_acquires_it(places: Any, folder: Path) -> None:
    other = places()
    db = sqlite_plain.open_synced(folder / "penstock.db", LogMoveTimer(), places())

    db.begin(durable=True)

    assert not other.acquire(wait=False)
    db.rollback()
    assert other.acquire(wait=False)
    other.release()
    db.close()


def test_the_write_lock_is_released_however_a_transaction_ends(open_another: Another) -> None:
    here, there = (StoreDriver(open_another(patience_ms=SOON_MS), ManualClock()) for _ in range(2))
    mail = here.queue()

    def fail(session: Session) -> None:
        raise QueueNotFound("no")

    for _ in range(2):
        with pytest.raises(QueueNotFound):
            here.write(fail)
        assert there.send(mail)
        here.write(no_room)
        with pytest.raises(StoreUnavailable):
            here.submit_send(mail, body=TOO_BIG).result(WAIT_S)
        assert there.send(mail)


def test_a_child_that_was_forked_under_the_write_lock_does_not_keep_it(
    start: Start, open_another: Another
) -> None:
    driver = StoreDriver(open_another(patience_ms=WAIT_S * 1000), ManualClock())
    peer = start().ready()
    child = peer.ask("leave_a_child")
    os.kill(peer.pid, signal.SIGKILL)

    try:
        driver.queue()
    finally:
        os.kill(child, signal.SIGKILL)
