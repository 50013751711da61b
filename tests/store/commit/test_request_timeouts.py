"""A request that waits for the store is answered in time, whatever the store waits for.

The tests pass the time by hand: what the watchdog would see after as long as a request may wait.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from penstock.domain.errors import OutcomeUnknown, ShuttingDown, StoreUnavailable
from penstock.ports.store import Claim
from penstock.store.commit import lane, readers
from penstock.store.sqlite.write_lock import WriteLock
from penstock.store.store import REQUEST_TIMEOUT_MS
from tests.factories import a_new_message
from tests.store.backends import RenewableDatabase
from tests.store.driver import WAIT_S, StoreDriver
from tests.support.waiting import eventually

LATER = 1 << 40  # in milliseconds: far behind what the watchdog itself has counted


def pass_time(store: Any, ms: int = REQUEST_TIMEOUT_MS) -> None:
    """Requests that wait now have waited for that long afterwards."""
    store._watchdog.look(LATER)
    store._watchdog.look(LATER + ms)


@pytest.fixture
def mail(driver: StoreDriver) -> Any:
    return driver.queue()


class Held:
    """A function for a session that blocks until `may_go` is set."""

    def __init__(self) -> None:
        self.is_in = threading.Event()
        self.may_go = threading.Event()

    def __call__(self, _: Any) -> str:
        self.is_in.set()
        assert self.may_go.wait(WAIT_S)
        return "done"


@contextmanager
def busy_writer(store: Any) -> Iterator[None]:
    """The one writer is in a transaction until the block ends."""
    held = Held()
    thread = threading.Thread(target=_ask, args=(store.write, held))
    thread.start()
    assert held.is_in.wait(WAIT_S)
    try:
        yield
    finally:
        held.may_go.set()
        thread.join(WAIT_S)
        eventually(lambda: not store._commits.unanswered())


@contextmanager
def reads_that_hang(store: Any) -> Iterator[list[Any]]:
    """As many as there are readers, until the block ends."""
    held = [Held(), Held()]
    threads = [threading.Thread(target=_ask, args=(store.read, one)) for one in held]
    for thread, one in zip(threads, held, strict=True):
        thread.start()
        assert one.is_in.wait(WAIT_S)
    try:
        yield held
    finally:
        for one in held:
            one.may_go.set()
        for thread in threads:
            thread.join(WAIT_S)


def _ask(submit: Any, what: Held) -> None:
    try:
        submit(what).result(WAIT_S)
    except OutcomeUnknown:
        return


def test_a_send_that_was_not_started_is_refused_and_never_stored(driver, mail):
    with busy_writer(driver.store):
        ticket = driver.submit_send(mail)
        pass_time(driver.store)
        with pytest.raises(StoreUnavailable, match="did not start") as refusal:
            ticket.result(WAIT_S)

    assert not isinstance(refusal.value, OutcomeUnknown)
    assert driver.send(mail)
    assert driver.counts(mail).sent_total == 1


def test_before_its_timeout_a_request_keeps_waiting(driver, mail):
    with busy_writer(driver.store):
        ticket = driver.submit_send(mail)
        pass_time(driver.store, REQUEST_TIMEOUT_MS - 1)

    assert ticket.result(WAIT_S)


def test_a_write_that_was_started_is_answered_as_unknown_and_may_still_be_carried_out(driver, mail):
    held, answers = Held(), []

    def write(session: Any) -> None:
        held(session)
        session.queues.change(mail.queue_no, is_paused=True, now=driver.now)

    def ask() -> None:
        try:
            driver.store.write(write).result(WAIT_S)
        except StoreUnavailable as error:
            answers.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    assert held.is_in.wait(WAIT_S)
    pass_time(driver.store)
    thread.join(WAIT_S)

    [answer] = answers
    assert isinstance(answer, OutcomeUnknown)
    held.may_go.set()
    eventually(lambda: driver.read(lambda s: s.queues.get(mail.queue_no).is_paused))


def test_a_read_is_refused_while_all_readers_hang(driver, mail):
    with reads_that_hang(driver.store):
        waiting = driver.store.read(lambda s: s.queues.count())
        pass_time(driver.store)
        with pytest.raises(StoreUnavailable, match="did not start"):
            waiting.result(WAIT_S)

    assert driver.read(lambda s: s.queues.count()) == 1


def test_tasks_of_an_event_loop_are_answered_as_well(driver, mail):
    async def main() -> list[Any]:
        claim = Claim(queue_no=mail.queue_no, now=driver.now)
        tickets = [
            driver.store.send([a_new_message(mail, now=driver.now)]),
            driver.store.claim(claim),
            driver.store.read(lambda s: s.queues.count()),
        ]
        waiting = asyncio.gather(*map(_awaited, tickets), return_exceptions=True)
        await asyncio.sleep(0)  # the loop hands them over
        await asyncio.sleep(0)
        pass_time(driver.store)
        return await asyncio.wait_for(waiting, WAIT_S)

    with busy_writer(driver.store), reads_that_hang(driver.store):
        answers = asyncio.run(main())

    assert [type(answer) for answer in answers] == [StoreUnavailable] * 3
    assert driver.counts(mail).sent_total == 0


def test_a_slow_request_does_not_disturb_later_ones(driver, mail):
    with busy_writer(driver.store):
        early = driver.submit_send(mail)
        pass_time(driver.store)
        late = driver.submit_send(mail)

    with pytest.raises(StoreUnavailable):
        early.result(WAIT_S)
    assert late.result(WAIT_S)


def test_the_timeout_can_be_reduced_for_requests_that_wait_already(driver, mail):
    with busy_writer(driver.store):
        ticket = driver.submit_send(mail)
        driver.store.limit_waits(100)
        pass_time(driver.store, 100)

        with pytest.raises(StoreUnavailable):
            ticket.result(WAIT_S)


def test_a_store_whose_writer_hangs_can_be_closed(open_store, clock, monkeypatch):
    monkeypatch.setattr(lane, "CLOSING_PATIENCE_S", 0.05)
    monkeypatch.setattr(readers, "CLOSING_PATIENCE_S", 0.05)
    store: Any = open_store()
    driver, held, refusals = StoreDriver(store, clock), Held(), []
    mail = driver.queue()

    def ask(submit: Any) -> None:
        try:
            submit().result(WAIT_S)
        except StoreUnavailable as error:
            refusals.append(error)

    begun = threading.Thread(target=ask, args=(lambda: driver.store.write(held),))
    begun.start()
    assert held.is_in.wait(WAIT_S)
    waiting = threading.Thread(target=ask, args=(lambda: driver.submit_send(mail),))
    waiting.start()
    eventually(lambda: store._commits.pending)
    reading = threading.Thread(target=ask, args=(lambda: driver.store.read(held),))
    reading.start()

    closing = threading.Thread(target=driver.store.close)
    closing.start()
    closing.join(WAIT_S)

    assert not closing.is_alive()
    for thread in (begun, waiting, reading):
        thread.join(WAIT_S)
    assert len(refusals) == 3
    assert any(isinstance(refusal, ShuttingDown) for refusal in refusals)
    held.may_go.set()


@pytest.mark.parametrize("backend", ["sqlite"])
def test_a_write_does_not_wait_for_ever_for_another_process(driver, mail, tmp_path: Path):
    rival = WriteLock(tmp_path / "penstock.db")  # as a process that was stopped while it wrote
    assert rival.acquire()
    ticket = driver.submit_send(mail)

    pass_time(driver.store)

    with pytest.raises(StoreUnavailable):
        ticket.result(WAIT_S)
    rival.close()
    assert driver.send(mail)
    assert driver.counts(mail).sent_total == 1


@pytest.mark.parametrize("backend", ["postgres"])
def test_a_write_does_not_wait_for_ever_for_a_locked_table(
    driver, mail, renewable_database: RenewableDatabase
):
    with psycopg.connect(renewable_database.url) as rival:
        rival.execute("LOCK TABLE message IN ACCESS EXCLUSIVE MODE")
        ticket = driver.submit_send(mail)
        eventually(lambda: driver.store._commits.unanswered())  # it waits for the lock

        pass_time(driver.store)

        with pytest.raises(OutcomeUnknown):
            ticket.result(WAIT_S)
    eventually(lambda: not driver.store._commits.unanswered())
    assert driver.send(mail)


async def _awaited(ticket: Any) -> Any:
    return await ticket
