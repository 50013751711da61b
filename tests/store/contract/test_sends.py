"""Sending: what is stored, what is refused, what is a duplicate."""

import pytest
from msgspec.structs import replace

from penstock.domain.errors import QueueFull, QueueNotFound
from penstock.domain.limits import HOUR, MINUTE
from penstock.domain.message.lifecycle import Content, State
from penstock.domain.queue.queue import Counts, Ordering
from penstock.ports.store import Sent
from tests.factories import a_new_message, a_queue
from tests.store.comparable import unnumbered


def send_all(driver, new):
    driver.sent_ids += [n.message.id for n in new]
    return unnumbered(driver.store.send(new).result())


def stored(driver, new):
    """As it was sent, with the numbers that the store has assigned."""
    found = driver.get(new.message.id)
    return replace(new.message, message_no=found.message_no, order_no=found.order_no)


def test_a_message_is_stored_as_the_sender_drafted_it(driver):
    mail = driver.queue()
    new = a_new_message(
        mail,
        now=driver.now,
        body='{"n": "ä€𝄞"}',
        attributes={"lang": "de", "q": 'a"b'},
        kind="welcome",
        entity_id="user-1",
        tags=("eu", "gold"),
        group="user-1",
        priority=-3,
        dedup_key="once",
        max_attempts=2,
        expires_in_ms=MINUTE,
        trace="00-1-2-01",
    )

    [answer] = send_all(driver, [new])

    assert answer == Sent(new.message.id)
    assert driver.get(new.message.id) == stored(driver, new)
    content = driver.read(lambda s: s.messages.content(driver.get(new.message.id)))
    assert content == new.content


def test_a_bare_message_is_stored_with_its_defaults(driver):
    mail = driver.queue()
    new = a_new_message(mail, now=driver.now, body="1")

    send_all(driver, [new])

    assert driver.get(new.message.id) == stored(driver, new)
    assert driver.read(lambda s: s.messages.content(driver.get(new.message.id))) == Content("1")


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 200])
def test_a_batch_of_any_size_is_stored_in_the_order_given(driver, size):
    mail = driver.queue()
    new = [a_new_message(mail, now=driver.now, body=str(n)) for n in range(size)]

    answers = send_all(driver, new)

    assert answers == [Sent(n.message.id) for n in new]
    claimed = driver.submit_claim(mail, 1_000).result().messages
    assert [content.body for _, content in claimed] == [str(n) for n in range(size)]


def test_a_delayed_message_waits_and_is_counted_apart(driver):
    mail = driver.queue()

    late = driver.send(mail, delay_ms=1)
    driver.send(mail)

    assert driver.get(late).state is State.WAITING
    assert driver.counts(mail) == Counts(waiting=1, ready=1, sent_total=2)


def test_an_unknown_queue_in_a_batch_costs_only_its_own_message(driver):
    mail, gone = driver.queue(), a_queue(12345)
    new = [a_new_message(q, now=driver.now) for q in (mail, gone, mail)]

    first, second, third = send_all(driver, new)

    assert (first, third) == (Sent(new[0].message.id), Sent(new[2].message.id))
    assert isinstance(second, QueueNotFound)
    assert driver.counts(mail).ready == 2


def test_one_batch_may_go_to_several_queues(driver):
    mail, post = driver.queue("mail"), driver.queue("post")
    new = [a_new_message(q, now=driver.now) for q in (mail, post, mail)]

    send_all(driver, new)

    assert driver.claim_ids(mail) == [new[0].message.id, new[2].message.id]
    assert driver.claim_ids(post) == [new[1].message.id]


def test_the_same_key_within_the_window_is_the_same_message(driver):
    mail = driver.queue(dedup_window_ms=MINUTE)
    first = driver.send(mail, dedup_key="once")
    driver.clock.advance(ms=MINUTE - 1)

    [answer] = unnumbered(driver.submit_send(mail, dedup_key="once", body="2").result())

    assert answer == Sent(first, is_duplicate=True)
    assert driver.counts(mail).sent_total == 1


def test_a_duplicate_is_one_even_after_its_message_has_ended(driver):
    mail = driver.queue(dedup_window_ms=MINUTE)
    first = driver.send(mail, dedup_key="once")
    driver.complete(*driver.claim(mail))

    [answer] = unnumbered(driver.submit_send(mail, dedup_key="once").result())

    assert answer == Sent(first, is_duplicate=True)


def test_after_the_window_the_key_is_free_again(driver):
    mail = driver.queue(dedup_window_ms=MINUTE)
    driver.send(mail, dedup_key="once")
    driver.clock.advance(ms=MINUTE)

    second = driver.send(mail, dedup_key="once")

    driver.clock.advance(ms=MINUTE - 1)
    [third] = unnumbered(driver.submit_send(mail, dedup_key="once").result())
    assert third == Sent(second, is_duplicate=True)


def test_the_same_key_twice_in_one_batch_is_one_message(driver):
    mail = driver.queue()
    new = [a_new_message(mail, now=driver.now, dedup_key=key) for key in ("a", "b", "a", "a")]

    answers = send_all(driver, new)

    ids = [n.message.id for n in new]
    assert answers == [
        Sent(ids[0]),
        Sent(ids[1]),
        Sent(ids[0], is_duplicate=True),
        Sent(ids[0], is_duplicate=True),
    ]
    assert driver.claim_ids(mail) == ids[:2]


def test_the_same_key_from_two_senders_in_one_batch_is_one_message(driver):
    mail = driver.queue()

    with driver.together():
        tickets = [driver.submit_send(mail, dedup_key="once") for _ in range(3)]

    [[first], *others] = [unnumbered(ticket.result()) for ticket in tickets]
    assert first == Sent(driver.sent_ids[0])
    assert others == [[Sent(driver.sent_ids[0], is_duplicate=True)]] * 2


def test_keys_of_different_queues_have_nothing_to_do_with_each_other(driver):
    mail, post = driver.queue("mail"), driver.queue("post")
    new = [a_new_message(q, now=driver.now, dedup_key="once") for q in (mail, post)]

    answers = send_all(driver, new)

    assert answers == [Sent(n.message.id) for n in new]


def test_without_a_window_no_message_is_a_duplicate(driver):
    mail = driver.queue(dedup_window_ms=0)
    new = [a_new_message(mail, now=driver.now, dedup_key="once") for _ in range(2)]

    answers = send_all(driver, new)

    assert answers == [Sent(n.message.id) for n in new]
    assert driver.send(mail, dedup_key="once")


@pytest.mark.parametrize("window_ms", [0, HOUR])
def test_a_message_may_have_a_window_of_its_own(driver, window_ms):
    mail = driver.queue(dedup_window_ms=window_ms)
    first = driver.send(mail, dedup_key="once", dedup_window_ms=MINUTE)
    driver.clock.advance(ms=MINUTE - 1)

    [answer] = unnumbered(
        driver.submit_send(mail, dedup_key="once", dedup_window_ms=MINUTE).result()
    )
    assert answer == Sent(first, is_duplicate=True)

    driver.clock.advance(ms=1)
    assert driver.send(mail, dedup_key="once", dedup_window_ms=MINUTE)


def test_the_duty_forgets_keys_whose_window_is_over_and_no_others(driver):
    mail = driver.queue(dedup_window_ms=MINUTE)
    driver.send(mail, dedup_key="old")
    driver.send(mail, dedup_key="older")
    driver.clock.advance(ms=MINUTE)
    new = driver.send(mail, dedup_key="new")

    forgotten = [
        driver.write(lambda s: s.maintenance.forget_dedup(now=driver.now, limit=1))
        for _ in range(3)
    ]

    assert forgotten == [1, 1, 0]
    [answer] = unnumbered(driver.submit_send(mail, dedup_key="new").result())
    assert answer == Sent(new, is_duplicate=True)


def test_a_full_queue_refuses_what_does_not_fit(driver):
    mail = driver.queue(max_messages=3)
    driver.send(mail)
    new = [a_new_message(mail, now=driver.now) for _ in range(4)]

    answers = send_all(driver, new)

    assert answers[:2] == [Sent(n.message.id) for n in new[:2]]
    assert [type(answer) for answer in answers[2:]] == [QueueFull, QueueFull]
    assert driver.counts(mail).ready == 3


@pytest.mark.parametrize("state", [State.WAITING, State.READY, State.LEASED])
def test_every_live_message_takes_up_room(driver, state):
    mail = driver.queue(max_messages=1)
    driver.send(mail, delay_ms=1 if state is State.WAITING else 0)
    if state is State.LEASED:
        driver.claim(mail)

    [answer] = driver.submit_send(mail).result()

    assert isinstance(answer, QueueFull)


def test_there_is_room_again_when_a_message_has_ended(driver):
    mail = driver.queue(max_messages=1)
    driver.send(mail)
    driver.complete(*driver.claim(mail))

    assert driver.send(mail)


def test_a_duplicate_needs_no_room_and_takes_none(driver):
    mail = driver.queue(max_messages=3)
    first = driver.send(mail, dedup_key="once")
    keys = ("once", "new", "new", "late", "last")
    new = [a_new_message(mail, now=driver.now, dedup_key=key) for key in keys]

    known, accepted, repeated, late, refused = send_all(driver, new)

    assert known == Sent(first, is_duplicate=True)
    assert accepted == Sent(new[1].message.id)
    assert repeated == Sent(new[1].message.id, is_duplicate=True)
    assert late == Sent(new[3].message.id)
    assert isinstance(refused, QueueFull)


def test_a_full_queue_still_recognises_duplicates(driver):
    mail = driver.queue(max_messages=1)
    first = driver.send(mail, dedup_key="once")

    [answer] = unnumbered(driver.submit_send(mail, dedup_key="once").result())

    assert answer == Sent(first, is_duplicate=True)


def test_a_refused_message_does_not_keep_its_key(driver):
    mail = driver.queue(max_messages=1)
    driver.send(mail)
    new = [a_new_message(mail, now=driver.now, dedup_key="once") for _ in range(2)]
    answers = send_all(driver, new)
    assert [type(answer) for answer in answers] == [QueueFull, QueueFull]
    driver.complete(*driver.claim(mail))

    assert driver.send(mail, dedup_key="once")


def test_a_message_behind_an_unfinished_one_of_its_group_is_blocked(driver):
    mail = driver.queue(ordering=Ordering.GROUP)
    new = [
        a_new_message(mail, now=driver.now, group=group) for group in ("a", "b", "a", None, None)
    ]

    send_all(driver, new)
    late = driver.send(mail, group="b")

    blocked = [driver.get(n.message.id).is_blocked for n in new]
    assert blocked == [False, False, True, False, False]
    assert driver.get(late).is_blocked


def test_a_group_means_nothing_in_a_queue_that_is_not_ordered_by_it(driver):
    mail = driver.queue(ordering=Ordering.STANDARD)

    ids = [driver.send(mail, group="a") for _ in range(2)]

    assert driver.claim_ids(mail) == ids
