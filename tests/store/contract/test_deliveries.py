"""Queries of the pusher: queues with claimable messages, and stored answers."""

import asyncio

import pytest
from msgspec import structs

from penstock.domain.delivery.delivery import queue_settings
from penstock.domain.errors import QueueNotFound
from penstock.domain.limits import MINUTE
from penstock.domain.message.lease import Verb
from penstock.domain.message.lifecycle import State
from penstock.ports.store import Claim
from penstock.store.commit.session import SqlSession
from tests.factories import an_act
from tests.store.counter_checks import check_counters


def with_ready(driver):
    return driver.read(lambda s: s.deliveries.queues_with_ready())


def test_only_queues_with_claimable_messages_are_returned(driver):
    full, empty, later = driver.queue("full"), driver.queue("empty"), driver.queue("later")
    driver.send_many(full, 2)
    driver.send(later, delay_ms=1_000)

    assert with_ready(driver) == [full.queue_no]
    driver.claim(full, limit=2)
    assert with_ready(driver) == []
    assert empty.queue_no not in with_ready(driver)


def test_paused_held_and_removed_queues_are_not_returned(driver):
    paused, held, removed, plain = (driver.queue(name) for name in ("a", "b", "c", "d"))
    for queue in (paused, held, removed, plain):
        driver.send(queue)

    driver.pause(paused)
    driver.write(lambda s: s.queues.hold([held.queue_no], by="circuit"))
    driver.write(lambda s: s.queues.remove(removed.queue_no, now=driver.now))

    assert with_ready(driver) == [plain.queue_no]
    driver.write(lambda s: s.queues.unhold([held.queue_no]))
    assert with_ready(driver) == [held.queue_no, plain.queue_no]


def test_queues_by_their_numbers_are_those_that_exist(driver):
    first, second = driver.queue("first", labels={"a": "b"}), driver.queue("second")
    driver.write(lambda s: s.queues.remove(second.queue_no, now=driver.now))

    nos = [first.queue_no, second.queue_no, 999_999]

    assert driver.read(lambda s: s.queues.by_numbers(nos)) == [first]
    assert driver.read(lambda s: s.queues.by_numbers([])) == []


@pytest.mark.parametrize("ordering", ["standard", "group"])
def test_a_completion_may_store_a_text_beside_others_without(driver, ordering):
    queue = driver.queue("mail", ordering=ordering)
    for group in "abc":
        driver.send(queue, group=group)
    said, late, plain = driver.claim(queue, limit=3)

    driver.store.act(
        [
            an_act(Verb.COMPLETE, said, now=driver.now, text="status 200 in 5 ms"),
            an_act(Verb.COMPLETE, late, now=driver.now, text="late", is_late_ok=True),
            an_act(Verb.COMPLETE, plain, now=driver.now),
        ]
    ).result()

    found = {ending.id: (ending.outcome, ending.reason) for ending in driver.endings()}
    assert found == {
        said.id: (State.DONE, "status 200 in 5 ms"),
        late.id: (State.DONE, "late"),
        plain.id: (State.DONE, None),
    }
    check_counters(driver)


def test_claims_in_many_queues_are_one_transaction_and_each_has_its_own_answer(driver, monkeypatch):
    queues = [driver.queue(f"q{number}") for number in range(5)]
    ids = [driver.send(queue) for queue in queues[:4]]
    driver.write(lambda s: s.queues.remove(queues[3].queue_no, now=driver.now))
    claims = [Claim(queue_no=q.queue_no, now=driver.now) for q in queues]
    ran, run = [], SqlSession.run

    def counted(self, requests, *, durable):
        ran.append(sum(request.payload in claims for request in requests))
        return run(self, requests, durable=durable)

    monkeypatch.setattr(SqlSession, "run", counted)

    tickets = driver.store.claim_all(claims)

    answers = [ticket.result() for ticket in (*tickets[:3], tickets[4])]
    claimed = [[message.id for message, _ in answer.messages] for answer in answers]
    assert claimed == [[ids[0]], [ids[1]], [ids[2]], []]
    with pytest.raises(QueueNotFound):
        tickets[3].result()
    assert [count for count in ran if count] == [5]  # stores of other tests may be at work
    assert driver.store.claim_all([]) == []


def test_on_an_event_loop_they_can_be_awaited(driver):
    queues = [driver.queue(f"q{number}") for number in range(3)]
    for queue in queues:
        driver.send(queue)

    async def claim_all():
        wanted = [Claim(queue_no=queue.queue_no, now=driver.now) for queue in queues]
        return [await ticket for ticket in driver.store.claim_all(wanted)]

    assert [len(claimed.messages) for claimed in asyncio.run(claim_all())] == [1, 1, 1]


def test_a_back_off_can_be_ended_and_what_its_sender_delayed_stays_delayed(driver):
    settings = structs.asdict(queue_settings())
    failed, delayed, leased = (driver.queue(name, **settings) for name in ("a", "b", "c"))
    first = driver.send(failed, group="push")
    driver.send(failed, group="push")
    [message] = driver.claim(failed)
    driver.act(Verb.FAIL, message, delay_ms=MINUTE)
    driver.send(delayed, group="push", delay_ms=MINUTE)
    driver.send(leased, group="push")
    driver.claim(leased)
    nos = [queue.queue_no for queue in (failed, delayed, leased)]

    found = driver.write(lambda s: s.deliveries.end_backoff(nos, now=driver.now))

    assert found == [failed.queue_no]
    assert [driver.claim_ids(queue) for queue in (failed, delayed, leased)] == [[first], [], []]
    check_counters(driver)
