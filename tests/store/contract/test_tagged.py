"""Messages by their tags: which are found, what may be changed, what is cancelled."""

import pytest

from penstock.domain.errors import InvalidRequest, MessageNotFound, WrongState
from penstock.domain.limits import DAY, DEFAULT_LIMITS, HOUR, MINUTE
from penstock.domain.message import notification
from penstock.domain.message.lifecycle import State
from penstock.domain.message.notification import Change
from penstock.ports.tags import Tagged
from tests.store.desk import Desk

FUTURE = (State.WAITING, State.READY)


def found(desk: Desk, **wanted) -> list[str]:
    return [m.id for m in desk.read(lambda s: s.tagged.find(Tagged(**wanted)))]


def change(desk: Desk, message_id: str, **what):
    wanted = Change(**what)

    def how(message, content, queue):
        return notification.change(
            message, content, queue, wanted, now=desk.now, limits=DEFAULT_LIMITS
        )

    return desk.write(lambda s: s.tagged.rewrite(message_id, how, now=desk.now))


def content(desk: Desk, message_id: str):
    message = desk.get(message_id)
    return desk.read(lambda s: s.tagged.contents([message]))[message.message_no]


def cancel(desk: Desk, queue, **wanted) -> int:
    return desk.write(
        lambda s: s.tagged.cancel(
            Tagged(**wanted), queue_no=queue.queue_no, reason="gone", now=desk.now
        )
    )


def test_both_tags_must_fit_when_both_are_named(desk):
    queue = desk.queue()
    mine = desk.send(queue, tags=("account-1", "tenant-1"))
    desk.send(queue, tags=("account-1", "tenant-2"))
    desk.send(queue, tags=("account-2", "tenant-1"))
    desk.send(queue)

    assert found(desk, tag1="account-1", tag2="tenant-1") == [mine]


def test_a_tag_alone_is_found_in_its_own_place_only(desk):
    queue = desk.queue()
    first = desk.send(queue, tags=("x",))
    second = desk.send(queue, tags=("y", "x"))

    assert found(desk, tag1="x") == [first]
    assert found(desk, tag2="x") == [second]
    assert found(desk, tag="x") == [first, second]


def test_a_message_with_the_same_tag_twice_is_found_once(desk):
    queue = desk.queue()
    twice = desk.send(queue, tags=("x", "x"))

    assert found(desk, tag="x") == [twice]


def test_without_a_tag_nothing_is_looked_for(desk):
    with pytest.raises(InvalidRequest):
        found(desk)


def test_messages_of_other_queues_are_found_unless_one_is_named(desk):
    mail, bills = desk.queue("mail"), desk.queue("bills")
    letter, bill = desk.send(mail, tags=("x",)), desk.send(bills, tags=("x",))

    assert found(desk, tag1="x") == [letter, bill]
    assert found(desk, tag1="x", queue_no=bills.queue_no) == [bill]


def test_what_is_leased_and_what_is_in_line_are_told_apart(desk):
    queue = desk.queue()
    held = desk.send(queue, tags=("x",))
    desk.claim(queue)
    ready = desk.send(queue, tags=("x",))
    waiting = desk.send(queue, tags=("x",), delay_ms=HOUR)

    assert found(desk, tag1="x", states=FUTURE) == [ready, waiting]
    assert found(desk, tag1="x", states=(State.LEASED,)) == [held]
    assert found(desk, tag1="x") == [held, ready, waiting]


def test_what_has_ended_is_found_no_more(desk):
    queue = desk.queue()
    desk.send(queue, tags=("x",))
    [held] = desk.claim(queue)
    desk.complete(held)

    assert found(desk, tag1="x") == []


def test_the_earlier_bound_is_inclusive_and_the_later_one_exclusive(desk):
    queue = desk.queue()
    noon = desk.now + DAY
    before, at, after = (
        desk.send(queue, tags=("x",), due_at=due_at) for due_at in (noon - 1, noon, noon + 1)
    )

    assert found(desk, tag1="x", due_before=noon) == [before]
    assert found(desk, tag1="x", due_from=noon) == [at, after]


def test_pages_follow_each_other_without_a_gap(desk):
    queue = desk.queue()
    sent = desk.send_many(queue, 7, tags=("x", "y"))

    seen: list[str] = []
    after = 0
    while page := desk.read(lambda s, a=after: s.tagged.find(Tagged(tag="y", limit=3, after_no=a))):
        seen += [m.id for m in page]
        after = page[-1].message_no

    assert seen == sent


def test_a_message_in_line_gets_another_body_and_other_tags(desk):
    queue = desk.queue()
    sent = desk.send(queue, tags=("x", "y"), kind="old", attributes={"a": "1"}, trace="t")

    change(desk, sent, body='{"new": 1}', tags=("z",), kind="new")

    assert found(desk, tag="x") == []
    assert found(desk, tag1="z") == [sent]
    after = content(desk, sent)
    assert (after.body, after.attributes, after.trace) == ('{"new": 1}', {"a": "1"}, "t")
    assert (desk.get(sent).kind, desk.get(sent).size) == ("new", 10)


def test_a_changed_body_is_what_is_claimed_and_what_history_remembers(desk, clock):
    queue = desk.queue()
    sent = desk.send(queue, body='"old"', tags=("x",), delay_ms=3 * DAY)
    clock.advance(days=2)

    change(desk, sent, body='"new"')
    clock.advance(days=1)
    claimed = desk.submit_claim(queue).result(30)
    [(message, given)] = claimed.messages
    desk.complete(message)

    assert given.body == '"new"'
    [ending] = desk.endings(tag1="x")
    assert desk.read(lambda s: s.history.content(ending)).body == '"new"'


def test_a_body_can_be_changed_twice_on_one_day(desk):
    queue = desk.queue()
    sent = desk.send(queue, tags=("x",))

    change(desk, sent, body="1")
    change(desk, sent, body="2")

    assert content(desk, sent).body == "2"


def test_a_change_of_the_date_brings_it_forward(desk):
    queue = desk.queue()
    sent = desk.send(queue, tags=("x",), delay_ms=HOUR)

    change(desk, sent, due_at=desk.now)

    assert desk.claim_ids(queue) == [sent]
    assert desk.counts(queue).waiting == 0


def test_a_leased_message_is_not_changed(desk):
    queue = desk.queue()
    sent = desk.send(queue, body="1", tags=("x",))
    desk.claim(queue)

    with pytest.raises(WrongState):
        change(desk, sent, body="2")

    assert content(desk, sent).body == "1"


def test_a_message_that_is_not_there_is_not_changed(desk):
    with pytest.raises(MessageNotFound):
        change(desk, "018f0000-0000-7000-8000-000000000000", body="2")


def test_all_in_line_with_the_tags_are_cancelled_and_no_other(desk):
    queue, other = desk.queue(), desk.queue("other")
    held = desk.send(queue, tags=("x",))
    desk.claim(queue)
    gone = [desk.send(queue, tags=("x",)), desk.send(queue, tags=("x",), delay_ms=HOUR)]
    left = desk.send(queue, tags=("y",))
    elsewhere = desk.send(other, tags=("x",))

    assert cancel(desk, queue, tag1="x") == 2

    assert found(desk, tag="x") == [held, elsewhere]
    assert found(desk, tag="y") == [left]
    assert {(e.id, e.outcome, e.reason) for e in desk.endings(tag1="x")} == {
        (message_id, State.CANCELLED, "gone") for message_id in gone
    }


def test_no_more_are_cancelled_at_once_than_asked_for(desk):
    queue = desk.queue()
    desk.send_many(queue, 5, tags=("x",))

    assert [cancel(desk, queue, tag1="x", limit=3) for _ in range(3)] == [3, 2, 0]


def test_a_cancelled_message_lets_the_next_of_its_group_come(desk):
    queue = desk.queue(ordering="group")
    desk.send(queue, tags=("x",), group="g")
    second = desk.send(queue, tags=("y",), group="g")

    cancel(desk, queue, tag1="x")

    assert desk.claim_ids(queue) == [second]


def test_history_is_found_by_each_tag_in_its_place(desk, clock):
    queue = desk.queue()
    for tags in (("a", "t"), ("b", "t"), ("t", "a")):
        desk.send(queue, tags=tags)
    for message in desk.claim(queue, 10):
        desk.complete(message)
    clock.advance(ms=MINUTE)

    assert [e.tag1 for e in desk.endings(tag1="a", tag2="t")] == ["a"]
    assert {e.tag1 for e in desk.endings(tag2="t")} == {"a", "b"}
