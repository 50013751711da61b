"""Group commit: every request is answered once, many share a transaction, failures pass."""

import asyncio
import threading
from collections import Counter
from typing import Any

import pytest

from penstock.domain.errors import StoreUnavailable
from penstock.domain.limits import MINUTE
from penstock.domain.message.lease import Verb
from penstock.ports.store import Claim, Sent
from penstock.store.commit import lane
from penstock.store.postgres.store import open_postgres
from tests.factories import a_new_message, an_act
from tests.store.backends import BACKENDS, PLAIN, RenewableDatabase
from tests.store.comparable import unnumbered
from tests.store.counter_checks import check_counters
from tests.store.driver import WAIT_S, StoreDriver
from tests.store.storage_failures import TOO_BIG, cut_off, no_room

ALSO_PLAIN = pytest.mark.parametrize("backend", [*BACKENDS, PLAIN])
THREADS = 8
EACH = 25
A_MOMENT = threading.Event()  # never set


@pytest.fixture
def mail(driver):
    return driver.queue("mail", lease_ms=MINUTE)


@pytest.fixture
def break_storage(backend, request):
    """A write that makes the storage fail for the rest of its transaction."""
    if backend != "postgres":
        return no_room
    home: RenewableDatabase = request.getfixturevalue("renewable_database")
    return cut_off(home.url)


def in_threads(count, do):
    """Run `do(n)` in that many threads at once; returns the answers."""
    answers, start = [None] * count, threading.Barrier(count)

    def run(n):
        start.wait(WAIT_S)
        answers[n] = do(n)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
    return answers


def test_every_thread_gets_the_answers_to_its_own_requests(driver, mail):
    def send_some(_):
        new = [a_new_message(mail, now=driver.now) for _ in range(EACH)]
        tickets = [driver.store.send([n]) for n in new]
        return [
            (n.message.id, ticket.result(WAIT_S)) for n, ticket in zip(new, tickets, strict=True)
        ]

    answers = in_threads(THREADS, send_some)

    for part in answers:
        assert [sent.id for _, [sent] in part] == [message_id for message_id, _ in part]
    assert driver.counts(mail).ready == THREADS * EACH


def test_many_requests_share_a_commit(driver, mail):
    batches: list[Any] = []
    driver.store.listen(lambda woken: batches.append(woken[mail.queue_no]))

    in_threads(THREADS, lambda _: [driver.send(mail) for _ in range(EACH)])

    assert sum(batches) == THREADS * EACH
    assert len(batches) < THREADS * EACH


def test_requests_that_gather_while_the_writer_is_busy_are_one_batch(driver, mail):
    batches: list[Any] = []
    driver.store.listen(batches.append)

    with driver.together():
        tickets = [driver.submit_send(mail) for _ in range(100)]
    for ticket in tickets:
        ticket.result(WAIT_S)

    assert batches == [{mail.queue_no: 100}]


def test_requests_of_one_thread_run_in_their_order(driver, mail):
    with driver.together():
        tickets = [driver.submit_send(mail) for _ in range(20)]
    for ticket in tickets:
        ticket.result(WAIT_S)

    assert driver.claim_ids(mail) == driver.sent_ids


def test_every_task_of_an_event_loop_gets_its_own_answer(driver, mail):
    async def send_and_claim(n):
        new = a_new_message(mail, now=driver.now, body=str(n))
        sent = await driver.store.send([new])
        claimed = await driver.store.claim(Claim(queue_no=mail.queue_no, now=driver.now))
        counts = await driver.store.read(lambda s: s.queues.counts([mail.queue_no]))
        assert [answer.id for answer in sent] == [new.message.id]
        assert counts[mail.queue_no].sent_total > 0
        return [message.id for message, _ in claimed.messages]

    async def main():
        return await asyncio.gather(*(send_and_claim(n) for n in range(100)))

    claimed = asyncio.run(main())

    ids = Counter(message_id for part in claimed for message_id in part)
    assert len(ids) == 100
    assert set(ids.values()) == {1}


def test_requests_of_one_loop_iteration_are_one_batch(driver, mail):
    batches: list[Any] = []
    driver.store.listen(batches.append)

    async def main():
        await asyncio.gather(*(awaited(driver.submit_send(mail)) for _ in range(50)))

    asyncio.run(main())

    assert batches == [{mail.queue_no: 50}]


async def awaited(ticket):
    return await ticket


def test_requests_that_do_not_fit_into_one_batch_are_not_left_waiting(driver, mail, monkeypatch):
    monkeypatch.setattr(lane, "MAX_PER_BATCH", 3)

    async def main():
        sends = [awaited(driver.submit_send(mail)) for _ in range(10)]
        return await asyncio.wait_for(asyncio.gather(*sends), WAIT_S)

    assert len(asyncio.run(main())) == 10


@pytest.mark.parametrize("backend", ["sqlite"])
def test_a_request_made_while_connections_are_closed_is_not_left_waiting(driver, mail):
    async def main():
        loop, tickets = asyncio.get_running_loop(), []

        def come_too_early():
            loop.call_soon_threadsafe(lambda: tickets.append(driver.submit_send(mail)))
            A_MOMENT.wait(0.1)  # the writer's thread looks and finds the lane busy

        await asyncio.to_thread(driver.store.close_connections, come_too_early)
        return await asyncio.wait_for(awaited(tickets[0]), WAIT_S)

    assert len(asyncio.run(main())) == 1


def test_threads_and_loops_share_the_writer(driver, mail):
    async def main():
        return await asyncio.gather(*(awaited(driver.submit_send(mail)) for _ in range(EACH)))

    def send_some(n):
        if n % 2:
            return asyncio.run(main())
        return [driver.submit_send(mail).result(WAIT_S) for _ in range(EACH)]

    answers = in_threads(4, send_some)

    ids = {answer.id for part in answers for [answer] in part}
    assert len(ids) == 4 * EACH
    assert driver.counts(mail).ready == 4 * EACH


@ALSO_PLAIN
def test_a_storage_error_fails_the_whole_batch_and_nothing_is_kept(driver, mail, break_storage):
    held_id = driver.send(mail)
    [held] = driver.claim(mail)

    with driver.together():
        tickets = [
            driver.store.write(break_storage),
            *(driver.submit_send(mail, body=TOO_BIG) for _ in range(3)),
            driver.submit_act(Verb.COMPLETE, held),
            driver.submit_claim(mail),
        ]
    for ticket in tickets:
        with pytest.raises(StoreUnavailable):
            ticket.result(WAIT_S)

    assert driver.get(held_id) == held
    assert driver.counts(mail).sent_total == 1


@ALSO_PLAIN
def test_after_a_storage_error_the_next_request_is_served(driver, mail, break_storage):
    with driver.together():
        broken = driver.store.write(break_storage)
        driver.submit_send(mail, body=TOO_BIG)
    with pytest.raises(StoreUnavailable):
        broken.result(WAIT_S)

    message_id = driver.send(mail, body=TOO_BIG)

    assert driver.claim_ids(mail) == [message_id]
    check_counters(driver)


@ALSO_PLAIN
def test_a_storage_error_reaches_tasks_as_well(driver, mail, break_storage):
    async def main():
        tickets = [driver.store.write(break_storage), driver.submit_send(mail, body=TOO_BIG)]
        return await asyncio.gather(*map(awaited, tickets), return_exceptions=True)

    answers = asyncio.run(main())

    assert [type(answer) for answer in answers] == [StoreUnavailable] * 2


def test_closing_finishes_what_was_taken(open_store, clock):
    driver = StoreDriver(open_store(), clock)
    mail = driver.queue()
    closer = threading.Thread(target=driver.store.close)

    with driver.together():
        tickets = [driver.submit_send(mail) for _ in range(10)]
        closer.start()
    closer.join(WAIT_S)

    answers = [unnumbered(ticket.result(WAIT_S)) for ticket in tickets]
    assert answers == [[Sent(message_id)] for message_id in driver.sent_ids]
    again = StoreDriver(open_store(), clock)
    assert again.claim_ids(mail) == driver.sent_ids
    again.store.close()


def work_off(driver, mail):
    """Send, claim and complete until nothing is left; returns the ids completed here."""
    driver.send_many(mail, EACH)
    done = []
    while held := driver.claim(mail, 3):
        for message in held:
            [answer] = driver.store.act([an_act(Verb.COMPLETE, message, now=driver.now)]).result(
                WAIT_S
            )
            done.append(answer.id)
    return done


def test_however_many_work_at_once_every_message_is_handled_once(driver, mail):
    parts = in_threads(4, lambda _: work_off(driver, mail))

    handled = Counter(message_id for part in parts for message_id in part)
    assert set(handled.values()) == {1}
    assert sorted(handled) == sorted(driver.sent_ids)
    check_counters(driver)


def test_several_writers_work_side_by_side(renewable_database, clock):
    store = open_postgres(renewable_database.renew(), lanes=4)
    driver = StoreDriver(store, clock)
    mail = driver.queue("mail", lease_ms=MINUTE)

    parts = in_threads(8, lambda _: work_off(driver, mail))

    handled = Counter(message_id for part in parts for message_id in part)
    left = driver.claim_ids(mail, 1_000)
    assert set(handled.values()) == {1}
    assert sorted([*handled, *left]) == sorted(driver.sent_ids)
    check_counters(driver)
    store.close()


def test_the_writer_survives_an_unexpected_error_and_reports_an_outage(driver, mail, monkeypatch):
    """A writer thread that ended would leave every later request waiting for ever."""
    lanes = driver.store._commits._lanes

    def fail():
        raise OSError("No space left on device")

    for each in lanes:
        each.close_connections(lambda: None)
        monkeypatch.setattr(each, "_open_session", fail)
    new = a_new_message(mail, now=driver.now)

    with pytest.raises(StoreUnavailable, match="No space left on device"):
        driver.store.send([new]).result(WAIT_S)
    monkeypatch.undo()

    assert all(each._thread.is_alive() for each in lanes)
    [sent] = driver.store.send([new]).result(WAIT_S)
    assert isinstance(sent, Sent)


def test_on_a_loop_the_writer_survives_an_unexpected_error(driver, mail, monkeypatch):
    lanes = driver.store._commits._lanes

    def fail(**_):
        raise OSError("Input/output error")

    async def send():
        return await asyncio.wait_for(driver.store.send([a_new_message(mail)]), WAIT_S)

    for each in lanes:
        monkeypatch.setattr(each._session.db, "acquire_write_lock", fail, raising=False)

    with pytest.raises(StoreUnavailable, match="Input/output error"):
        asyncio.run(send())

    assert all(each._thread.is_alive() for each in lanes)
    [sent] = asyncio.run(send())
    assert isinstance(sent, Sent)
