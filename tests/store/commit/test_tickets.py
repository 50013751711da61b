"""Tickets: answers for threads that block and for tasks that await."""

import asyncio
from typing import Any

import pytest

from penstock.domain.errors import PenstockError, ShuttingDown
from tests.store.driver import WAIT_S, StoreDriver, one_batch


@pytest.fixture
def mail(driver):
    return driver.queue("mail")


async def awaited(ticket):
    return await ticket


def test_a_thread_may_read_its_answer_several_times(driver, mail):
    ticket = driver.submit_send(mail)

    assert ticket.result(WAIT_S) == ticket.result(WAIT_S) == ticket.result(0)


def test_an_answer_that_takes_too_long_can_still_be_waited_for(driver, mail):
    with driver.together():
        ticket = driver.submit_send(mail)
        with pytest.raises(TimeoutError):
            ticket.result(0)

    assert [sent.id for sent in ticket.result(WAIT_S)] == driver.sent_ids


def test_a_refusal_reaches_the_task_that_asked(driver):
    async def main():
        await driver.store.write(lambda s: s.queues.get(12345))

    with pytest.raises(PenstockError, match="12345"):
        asyncio.run(main())


def test_an_answer_is_called_back_once_whether_it_is_there_already_or_not(driver, mail):
    answers: list[Any] = []

    async def main():
        early = driver.submit_send(mail)
        early.then(answers.append)
        await awaited(driver.submit_send(mail))
        early.then(answers.append)

    asyncio.run(main())

    assert [sent.id for [sent] in answers] == [driver.sent_ids[0]] * 2


def test_a_ticket_of_a_loop_is_awaited_and_one_of_a_thread_is_not(driver, mail):
    from_a_thread = driver.submit_send(mail)

    async def main():
        from_the_loop = driver.submit_send(mail)
        with pytest.raises(RuntimeError, match="await"):
            from_the_loop.result()
        with pytest.raises(RuntimeError, match="result"):
            await from_a_thread
        await from_the_loop

    asyncio.run(main())


def test_a_task_that_is_cancelled_before_its_answer_disturbs_no_other(driver, mail):
    async def main():
        with one_batch(driver.store):
            gone = asyncio.create_task(awaited(driver.submit_send(mail)))
            stays = asyncio.create_task(awaited(driver.submit_send(mail)))
            await asyncio.sleep(0)
            gone.cancel()
        return await stays

    assert [sent.id for sent in asyncio.run(main())] == [driver.sent_ids[1]]

    assert driver.counts(mail).ready == 2


def test_a_loop_that_is_closed_before_the_answer_disturbs_no_other(driver, mail):
    async def main():
        driver.submit_send(mail)
        await asyncio.sleep(0)

    with driver.together():
        asyncio.run(main())

    assert driver.send(mail)
    assert driver.counts(mail).ready == 2


def test_a_request_is_answered_when_the_store_closes(open_store, clock):
    driver = StoreDriver(open_store(), clock)
    mail = driver.queue()

    async def main():
        ticket = driver.submit_send(mail)  # the loop has not handed it over yet
        driver.store.close()
        await asyncio.wait_for(awaited(ticket), WAIT_S)

    with pytest.raises(ShuttingDown):
        asyncio.run(main())
