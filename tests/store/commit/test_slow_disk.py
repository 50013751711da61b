"""A loop commits unsynced batches itself, and leaves synced and long ones to the thread."""

import asyncio
import threading
from collections import Counter
from typing import Any

import pytest

from penstock.domain.errors import PenstockError
from penstock.domain.queue.queue import Queue
from penstock.ports.store import Claim, Sent
from penstock.store.commit.session import SqlSession
from tests.factories import a_new_message
from tests.store.counter_checks import check_counters
from tests.store.driver import StoreDriver
from tests.support.waiting import eventually

TASKS, EACH = 20, 10


@pytest.fixture
def backend() -> str:
    return "sqlite"  # on PostgreSQL the threads do everything


@pytest.fixture
def committed_by(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts commits by the name of the thread that made them."""
    return count_calls(monkeypatch, "finish")


@pytest.fixture
def prepared_by(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts transactions by the name of the thread that ran their statements."""
    return count_calls(monkeypatch, "prepare")


def count_calls(monkeypatch: pytest.MonkeyPatch, method: str) -> Counter[str]:
    names: Counter[str] = Counter()
    original = getattr(SqlSession, method)

    def counted(session: SqlSession, *args: Any, **kwargs: Any) -> Any:
        names[threading.current_thread().name] += 1
        return original(session, *args, **kwargs)

    monkeypatch.setattr(SqlSession, method, counted)
    return names


async def send_all(driver: StoreDriver, mail: Queue) -> list[Any]:
    async def send_some() -> list[Any]:
        answers: list[Any] = []
        for _ in range(EACH):
            answers += await driver.store.send([a_new_message(mail, now=driver.now)])
        return answers

    parts = await asyncio.gather(*(send_some() for _ in range(TASKS)))
    return [answer for part in parts for answer in part]


def test_a_loop_commits_claims_itself(driver, committed_by):
    mail = driver.queue()
    driver.send_many(mail, EACH)

    async def claim() -> Any:
        return await driver.store.claim(Claim(queue_no=mail.queue_no, now=driver.now, limit=1))

    def is_committed_here() -> bool:
        committed_by.clear()
        asyncio.run(claim())
        return set(committed_by) == {threading.current_thread().name}

    # The thread answers the sends before it leaves the connection to others.
    eventually(is_committed_here)


def test_the_thread_commits_what_is_synced_and_nothing_is_lost(driver, committed_by):
    mail = driver.queue()
    committed_by.clear()

    answers = asyncio.run(send_all(driver, mail))

    assert len({answer.id for answer in answers}) == TASKS * EACH
    assert set(committed_by) == {"penstock-writer"}
    assert driver.counts(mail).ready == TASKS * EACH
    check_counters(driver)


def test_the_thread_runs_what_may_take_long(driver, prepared_by):
    prepared_by.clear()

    async def write() -> Any:
        return await driver.store.write(lambda _: 7)

    assert asyncio.run(write()) == 7
    assert set(prepared_by) == {"penstock-writer"}


def test_a_request_that_cannot_be_kept_fails_alone_on_a_loop_too(driver):
    mail = driver.queue()

    async def both() -> Any:
        new = a_new_message(mail, now=driver.now)
        good = driver.store.send([new])
        bad = driver.store.send([new])  # an id can be there only once
        return await asyncio.gather(_answer(good), _answer(bad), return_exceptions=True)

    good, bad = asyncio.run(both())

    assert isinstance(good[0], Sent)
    assert isinstance(bad, PenstockError)
    assert driver.counts(mail).ready == 1


async def _answer(ticket):
    return await ticket
