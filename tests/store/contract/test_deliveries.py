"""What is asked for pushing: where something waits, and what was answered."""

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
from tests.store.recount import check_books


def with_ready(desk):
    return desk.read(lambda s: s.deliveries.queues_with_ready())


def test_only_queues_with_something_in_line_are_worth_a_look(desk):
    full, empty, later = desk.queue("full"), desk.queue("empty"), desk.queue("later")
    desk.send_many(full, 2)
    desk.send(later, delay_ms=1_000)

    assert with_ready(desk) == [full.queue_no]
    desk.claim(full, limit=2)
    assert with_ready(desk) == []
    assert empty.queue_no not in with_ready(desk)


def test_paused_held_and_removed_queues_are_not(desk):
    paused, held, removed, plain = (desk.queue(name) for name in ("a", "b", "c", "d"))
    for queue in (paused, held, removed, plain):
        desk.send(queue)

    desk.pause(paused)
    desk.write(lambda s: s.queues.hold([held.queue_no], by="circuit"))
    desk.write(lambda s: s.queues.remove(removed.queue_no, now=desk.now))

    assert with_ready(desk) == [plain.queue_no]
    desk.write(lambda s: s.queues.unhold([held.queue_no]))
    assert with_ready(desk) == [held.queue_no, plain.queue_no]


def test_queues_by_their_numbers_are_those_that_exist(desk):
    first, second = desk.queue("first", labels={"a": "b"}), desk.queue("second")
    desk.write(lambda s: s.queues.remove(second.queue_no, now=desk.now))

    nos = [first.queue_no, second.queue_no, 999_999]

    assert desk.read(lambda s: s.deliveries.queues(nos)) == [first]
    assert desk.read(lambda s: s.deliveries.queues([])) == []


@pytest.mark.parametrize("ordering", ["standard", "group"])
def test_a_completion_may_leave_a_word_and_others_beside_it_none(desk, ordering):
    queue = desk.queue("mail", ordering=ordering)
    for group in "abc":
        desk.send(queue, group=group)
    said, late, plain = desk.claim(queue, limit=3)

    desk.store.act(
        [
            an_act(Verb.COMPLETE, said, now=desk.now, text="status 200 in 5 ms"),
            an_act(Verb.COMPLETE, late, now=desk.now, text="late", is_late_ok=True),
            an_act(Verb.COMPLETE, plain, now=desk.now),
        ]
    ).result()

    found = {ending.id: (ending.outcome, ending.reason) for ending in desk.endings()}
    assert found == {
        said.id: (State.DONE, "status 200 in 5 ms"),
        late.id: (State.DONE, "late"),
        plain.id: (State.DONE, None),
    }
    check_books(desk)


def test_claims_in_many_queues_are_one_transaction_and_each_has_its_own_answer(desk, monkeypatch):
    queues = [desk.queue(f"q{number}") for number in range(5)]
    ids = [desk.send(queue) for queue in queues[:4]]
    desk.write(lambda s: s.queues.remove(queues[3].queue_no, now=desk.now))
    claims = [Claim(queue_no=q.queue_no, now=desk.now) for q in queues]
    ran, run = [], SqlSession.run

    def counted(self, requests, *, durable):
        ran.append(sum(request.payload in claims for request in requests))
        return run(self, requests, durable=durable)

    monkeypatch.setattr(SqlSession, "run", counted)

    tickets = desk.store.claim_all(claims)

    answers = [ticket.result() for ticket in (*tickets[:3], tickets[4])]
    claimed = [[message.id for message, _ in answer.messages] for answer in answers]
    assert claimed == [[ids[0]], [ids[1]], [ids[2]], []]
    with pytest.raises(QueueNotFound):
        tickets[3].result()
    assert [count for count in ran if count] == [5]  # stores of others may be at work beside it
    assert desk.store.claim_all([]) == []


def test_on_an_event_loop_they_can_be_awaited(desk):
    queues = [desk.queue(f"q{number}") for number in range(3)]
    for queue in queues:
        desk.send(queue)

    async def claim_all():
        wanted = [Claim(queue_no=queue.queue_no, now=desk.now) for queue in queues]
        return [await ticket for ticket in desk.store.claim_all(wanted)]

    assert [len(claimed.messages) for claimed in asyncio.run(claim_all())] == [1, 1, 1]


def test_a_back_off_can_be_ended_and_what_its_sender_delayed_stays_delayed(desk):
    settings = structs.asdict(queue_settings())
    failed, delayed, leased = (desk.queue(name, **settings) for name in ("a", "b", "c"))
    first = desk.send(failed, group="push")
    desk.send(failed, group="push")
    [message] = desk.claim(failed)
    desk.act(Verb.FAIL, message, delay_ms=MINUTE)
    desk.send(delayed, group="push", delay_ms=MINUTE)
    desk.send(leased, group="push")
    desk.claim(leased)
    nos = [queue.queue_no for queue in (failed, delayed, leased)]

    found = desk.write(lambda s: s.deliveries.end_backoff(nos, now=desk.now))

    assert found == [failed.queue_no]
    assert [desk.claim_ids(queue) for queue in (failed, delayed, leased)] == [[first], [], []]
    check_books(desk)
