"""Messages by their tags: search, change, cancel."""

import pytest

from penstock.domain.errors import InvalidRequest, MessageNotFound, WrongState
from penstock.domain.limits import DAY, DEFAULT_LIMITS, HOUR, MINUTE
from penstock.domain.message import notification
from penstock.domain.message.lifecycle import State
from penstock.domain.message.notification import Change
from penstock.ports.topics import Tagged
from tests.store.driver import StoreDriver

FUTURE = (State.WAITING, State.READY)


def found(driver: StoreDriver, **wanted) -> list[str]:
    return [m.id for m in driver.read(lambda s: s.tagged.find(Tagged(**wanted)))]


def change(driver: StoreDriver, message_id: str, **what):
    wanted = Change(**what)

    def how(message, content, queue):
        return notification.change(
            message, content, queue, wanted, now=driver.now, limits=DEFAULT_LIMITS
        )

    return driver.write(lambda s: s.tagged.rewrite(message_id, how, now=driver.now))


def content(driver: StoreDriver, message_id: str):
    message = driver.get(message_id)
    return driver.read(lambda s: s.tagged.contents([message]))[message.message_no]


def cancel(driver: StoreDriver, queue, **wanted) -> int:
    return driver.write(
        lambda s: s.tagged.cancel(
            Tagged(**wanted), queue_no=queue.queue_no, reason="gone", now=driver.now
        )
    )


def test_both_tags_must_fit_when_both_are_named(driver):
    queue = driver.queue()
    mine = driver.send(queue, tags=("account-1", "tenant-1"))
    driver.send(queue, tags=("account-1", "tenant-2"))
    driver.send(queue, tags=("account-2", "tenant-1"))
    driver.send(queue)

    assert found(driver, tag1="account-1", tag2="tenant-1") == [mine]


def test_a_tag_alone_is_found_in_its_own_place_only(driver):
    queue = driver.queue()
    first = driver.send(queue, tags=("x",))
    second = driver.send(queue, tags=("y", "x"))

    assert found(driver, tag1="x") == [first]
    assert found(driver, tag2="x") == [second]
    assert found(driver, tag="x") == [first, second]


def test_a_message_with_the_same_tag_twice_is_found_once(driver):
    queue = driver.queue()
    twice = driver.send(queue, tags=("x", "x"))

    assert found(driver, tag="x") == [twice]


def test_without_a_tag_nothing_is_looked_for(driver):
    with pytest.raises(InvalidRequest):
        found(driver)


def test_messages_of_other_queues_are_found_unless_one_is_named(driver):
    mail, bills = driver.queue("mail"), driver.queue("bills")
    letter, bill = driver.send(mail, tags=("x",)), driver.send(bills, tags=("x",))

    assert found(driver, tag1="x") == [letter, bill]
    assert found(driver, tag1="x", queue_no=bills.queue_no) == [bill]


def test_leased_and_unclaimed_messages_are_distinguished(driver):
    queue = driver.queue()
    held = driver.send(queue, tags=("x",))
    driver.claim(queue)
    ready = driver.send(queue, tags=("x",))
    waiting = driver.send(queue, tags=("x",), delay_ms=HOUR)

    assert found(driver, tag1="x", states=FUTURE) == [ready, waiting]
    assert found(driver, tag1="x", states=(State.LEASED,)) == [held]
    assert found(driver, tag1="x") == [held, ready, waiting]


def test_ended_messages_are_not_found(driver):
    queue = driver.queue()
    driver.send(queue, tags=("x",))
    [held] = driver.claim(queue)
    driver.complete(held)

    assert found(driver, tag1="x") == []


def test_the_earlier_bound_is_inclusive_and_the_later_one_exclusive(driver):
    queue = driver.queue()
    noon = driver.now + DAY
    before, at, after = (
        driver.send(queue, tags=("x",), due_at=due_at) for due_at in (noon - 1, noon, noon + 1)
    )

    assert found(driver, tag1="x", due_before=noon) == [before]
    assert found(driver, tag1="x", due_from=noon) == [at, after]


def test_pages_follow_each_other_without_a_gap(driver):
    queue = driver.queue()
    sent = driver.send_many(queue, 7, tags=("x", "y"))

    seen: list[str] = []
    after = 0
    while page := driver.read(
        lambda s, a=after: s.tagged.find(Tagged(tag="y", limit=3, after_no=a))
    ):
        seen += [m.id for m in page]
        after = page[-1].message_no

    assert seen == sent


def test_an_unclaimed_message_gets_another_body_and_other_tags(driver):
    queue = driver.queue()
    sent = driver.send(queue, tags=("x", "y"), kind="old", attributes={"a": "1"}, trace="t")

    change(driver, sent, body='{"new": 1}', tags=("z",), kind="new")

    assert found(driver, tag="x") == []
    assert found(driver, tag1="z") == [sent]
    after = content(driver, sent)
    assert (after.body, after.attributes, after.trace) == ('{"new": 1}', {"a": "1"}, "t")
    assert (driver.get(sent).kind, driver.get(sent).size) == ("new", 10)


def test_a_changed_body_is_what_is_claimed_and_what_history_remembers(driver, clock):
    queue = driver.queue()
    sent = driver.send(queue, body='"old"', tags=("x",), delay_ms=3 * DAY)
    clock.advance(days=2)

    change(driver, sent, body='"new"')
    clock.advance(days=1)
    claimed = driver.submit_claim(queue).result(30)
    [(message, given)] = claimed.messages
    driver.complete(message)

    assert given.body == '"new"'
    [ending] = driver.endings(tag1="x")
    assert driver.read(lambda s: s.history.content(ending)).body == '"new"'


def test_a_body_can_be_changed_twice_on_one_day(driver):
    queue = driver.queue()
    sent = driver.send(queue, tags=("x",))

    change(driver, sent, body="1")
    change(driver, sent, body="2")

    assert content(driver, sent).body == "2"


def test_a_change_of_the_date_brings_it_forward(driver):
    queue = driver.queue()
    sent = driver.send(queue, tags=("x",), delay_ms=HOUR)

    change(driver, sent, due_at=driver.now)

    assert driver.claim_ids(queue) == [sent]
    assert driver.counts(queue).waiting == 0


def test_a_leased_message_is_not_changed(driver):
    queue = driver.queue()
    sent = driver.send(queue, body="1", tags=("x",))
    driver.claim(queue)

    with pytest.raises(WrongState):
        change(driver, sent, body="2")

    assert content(driver, sent).body == "1"


def test_a_missing_message_is_not_changed(driver):
    with pytest.raises(MessageNotFound):
        change(driver, "018f0000-0000-7000-8000-000000000000", body="2")


def test_unclaimed_messages_with_the_tags_are_cancelled_and_no_others(driver):
    queue, other = driver.queue(), driver.queue("other")
    held = driver.send(queue, tags=("x",))
    driver.claim(queue)
    gone = [driver.send(queue, tags=("x",)), driver.send(queue, tags=("x",), delay_ms=HOUR)]
    left = driver.send(queue, tags=("y",))
    elsewhere = driver.send(other, tags=("x",))

    assert cancel(driver, queue, tag1="x") == 2

    assert found(driver, tag="x") == [held, elsewhere]
    assert found(driver, tag="y") == [left]
    assert {(e.id, e.outcome, e.reason) for e in driver.endings(tag1="x")} == {
        (message_id, State.CANCELLED, "gone") for message_id in gone
    }


def test_no_more_are_cancelled_at_once_than_asked_for(driver):
    queue = driver.queue()
    driver.send_many(queue, 5, tags=("x",))

    assert [cancel(driver, queue, tag1="x", limit=3) for _ in range(3)] == [3, 2, 0]


def test_cancelling_a_message_unblocks_the_next_of_its_group(driver):
    queue = driver.queue(ordering="group")
    driver.send(queue, tags=("x",), group="g")
    second = driver.send(queue, tags=("y",), group="g")

    cancel(driver, queue, tag1="x")

    assert driver.claim_ids(queue) == [second]


def test_history_is_found_by_each_tag_in_its_place(driver, clock):
    queue = driver.queue()
    for tags in (("a", "t"), ("b", "t"), ("t", "a")):
        driver.send(queue, tags=tags)
    for message in driver.claim(queue, 10):
        driver.complete(message)
    clock.advance(ms=MINUTE)

    assert [e.tag1 for e in driver.endings(tag1="a", tag2="t")] == ["a"]
    assert {e.tag1 for e in driver.endings(tag2="t")} == {"a", "b"}
