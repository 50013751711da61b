"""Sending: what is stored, what is refused, what is a duplicate."""

import pytest
from msgspec.structs import replace

from penstock.domain.errors import QueueFull, QueueNotFound
from penstock.domain.limits import HOUR, MINUTE
from penstock.domain.message.lifecycle import Content, State
from penstock.domain.queue.counts import Counts
from penstock.domain.queue.queue import Ordering
from penstock.ports.store import Sent
from tests.factories import a_new_message, a_queue
from tests.store.plain import unnumbered


def send_all(desk, new):
    desk.sent_ids += [n.message.id for n in new]
    return unnumbered(desk.store.send(new).result())


def stored(desk, new):
    """As it was sent, with the numbers the store has given."""
    found = desk.get(new.message.id)
    return replace(new.message, message_no=found.message_no, order_no=found.order_no)


def test_a_message_is_stored_as_the_sender_drafted_it(desk):
    mail = desk.queue()
    new = a_new_message(
        mail,
        now=desk.now,
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

    [answer] = send_all(desk, [new])

    assert answer == Sent(new.message.id)
    assert desk.get(new.message.id) == stored(desk, new)
    content = desk.read(lambda s: s.messages.content(desk.get(new.message.id)))
    assert content == new.content


def test_a_bare_message_is_stored_with_its_defaults(desk):
    mail = desk.queue()
    new = a_new_message(mail, now=desk.now, body="1")

    send_all(desk, [new])

    assert desk.get(new.message.id) == stored(desk, new)
    assert desk.read(lambda s: s.messages.content(desk.get(new.message.id))) == Content("1")


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 200])
def test_a_batch_of_any_size_is_stored_in_the_order_given(desk, size):
    mail = desk.queue()
    new = [a_new_message(mail, now=desk.now, body=str(n)) for n in range(size)]

    answers = send_all(desk, new)

    assert answers == [Sent(n.message.id) for n in new]
    claimed = desk.submit_claim(mail, 1_000).result().messages
    assert [content.body for _, content in claimed] == [str(n) for n in range(size)]


def test_a_delayed_message_waits_and_is_counted_apart(desk):
    mail = desk.queue()

    late = desk.send(mail, delay_ms=1)
    desk.send(mail)

    assert desk.get(late).state is State.WAITING
    assert desk.counts(mail) == Counts(waiting=1, ready=1, sent_total=2)


def test_an_unknown_queue_in_a_batch_costs_only_its_own_message(desk):
    mail, gone = desk.queue(), a_queue(12345)
    new = [a_new_message(q, now=desk.now) for q in (mail, gone, mail)]

    first, second, third = send_all(desk, new)

    assert (first, third) == (Sent(new[0].message.id), Sent(new[2].message.id))
    assert isinstance(second, QueueNotFound)
    assert desk.counts(mail).ready == 2


def test_one_batch_may_go_to_several_queues(desk):
    mail, post = desk.queue("mail"), desk.queue("post")
    new = [a_new_message(q, now=desk.now) for q in (mail, post, mail)]

    send_all(desk, new)

    assert desk.claim_ids(mail) == [new[0].message.id, new[2].message.id]
    assert desk.claim_ids(post) == [new[1].message.id]


def test_the_same_key_within_the_window_is_the_same_message(desk):
    mail = desk.queue(dedup_window_ms=MINUTE)
    first = desk.send(mail, dedup_key="once")
    desk.clock.advance(ms=MINUTE - 1)

    [answer] = unnumbered(desk.submit_send(mail, dedup_key="once", body="2").result())

    assert answer == Sent(first, is_duplicate=True)
    assert desk.counts(mail).sent_total == 1


def test_a_duplicate_is_one_even_after_its_message_has_ended(desk):
    mail = desk.queue(dedup_window_ms=MINUTE)
    first = desk.send(mail, dedup_key="once")
    desk.complete(*desk.claim(mail))

    [answer] = unnumbered(desk.submit_send(mail, dedup_key="once").result())

    assert answer == Sent(first, is_duplicate=True)


def test_after_the_window_the_key_is_free_again(desk):
    mail = desk.queue(dedup_window_ms=MINUTE)
    desk.send(mail, dedup_key="once")
    desk.clock.advance(ms=MINUTE)

    second = desk.send(mail, dedup_key="once")

    desk.clock.advance(ms=MINUTE - 1)
    [third] = unnumbered(desk.submit_send(mail, dedup_key="once").result())
    assert third == Sent(second, is_duplicate=True)


def test_the_same_key_twice_in_one_batch_is_one_message(desk):
    mail = desk.queue()
    new = [a_new_message(mail, now=desk.now, dedup_key=key) for key in ("a", "b", "a", "a")]

    answers = send_all(desk, new)

    ids = [n.message.id for n in new]
    assert answers == [
        Sent(ids[0]),
        Sent(ids[1]),
        Sent(ids[0], is_duplicate=True),
        Sent(ids[0], is_duplicate=True),
    ]
    assert desk.claim_ids(mail) == ids[:2]


def test_the_same_key_from_two_senders_in_one_batch_is_one_message(desk):
    mail = desk.queue()

    with desk.together():
        tickets = [desk.submit_send(mail, dedup_key="once") for _ in range(3)]

    [[first], *others] = [unnumbered(ticket.result()) for ticket in tickets]
    assert first == Sent(desk.sent_ids[0])
    assert others == [[Sent(desk.sent_ids[0], is_duplicate=True)]] * 2


def test_keys_of_different_queues_have_nothing_to_do_with_each_other(desk):
    mail, post = desk.queue("mail"), desk.queue("post")
    new = [a_new_message(q, now=desk.now, dedup_key="once") for q in (mail, post)]

    answers = send_all(desk, new)

    assert answers == [Sent(n.message.id) for n in new]


def test_without_a_window_no_message_is_a_duplicate(desk):
    mail = desk.queue(dedup_window_ms=0)
    new = [a_new_message(mail, now=desk.now, dedup_key="once") for _ in range(2)]

    answers = send_all(desk, new)

    assert answers == [Sent(n.message.id) for n in new]
    assert desk.send(mail, dedup_key="once")


@pytest.mark.parametrize("window_ms", [0, HOUR])
def test_a_message_may_have_a_window_of_its_own(desk, window_ms):
    mail = desk.queue(dedup_window_ms=window_ms)
    first = desk.send(mail, dedup_key="once", dedup_window_ms=MINUTE)
    desk.clock.advance(ms=MINUTE - 1)

    [answer] = unnumbered(desk.submit_send(mail, dedup_key="once", dedup_window_ms=MINUTE).result())
    assert answer == Sent(first, is_duplicate=True)

    desk.clock.advance(ms=1)
    assert desk.send(mail, dedup_key="once", dedup_window_ms=MINUTE)


def test_the_duty_forgets_keys_whose_window_is_over_and_no_others(desk):
    mail = desk.queue(dedup_window_ms=MINUTE)
    desk.send(mail, dedup_key="old")
    desk.send(mail, dedup_key="older")
    desk.clock.advance(ms=MINUTE)
    new = desk.send(mail, dedup_key="new")

    forgotten = [
        desk.write(lambda s: s.tidying.forget_dedup(now=desk.now, limit=1)) for _ in range(3)
    ]

    assert forgotten == [1, 1, 0]
    [answer] = unnumbered(desk.submit_send(mail, dedup_key="new").result())
    assert answer == Sent(new, is_duplicate=True)


def test_a_full_queue_refuses_what_does_not_fit(desk):
    mail = desk.queue(max_messages=3)
    desk.send(mail)
    new = [a_new_message(mail, now=desk.now) for _ in range(4)]

    answers = send_all(desk, new)

    assert answers[:2] == [Sent(n.message.id) for n in new[:2]]
    assert [type(answer) for answer in answers[2:]] == [QueueFull, QueueFull]
    assert desk.counts(mail).ready == 3


@pytest.mark.parametrize("state", [State.WAITING, State.READY, State.LEASED])
def test_every_live_message_takes_up_room(desk, state):
    mail = desk.queue(max_messages=1)
    desk.send(mail, delay_ms=1 if state is State.WAITING else 0)
    if state is State.LEASED:
        desk.claim(mail)

    [answer] = desk.submit_send(mail).result()

    assert isinstance(answer, QueueFull)


def test_there_is_room_again_when_a_message_has_ended(desk):
    mail = desk.queue(max_messages=1)
    desk.send(mail)
    desk.complete(*desk.claim(mail))

    assert desk.send(mail)


def test_a_duplicate_needs_no_room_and_takes_none(desk):
    mail = desk.queue(max_messages=3)
    first = desk.send(mail, dedup_key="once")
    keys = ("once", "new", "new", "late", "last")
    new = [a_new_message(mail, now=desk.now, dedup_key=key) for key in keys]

    known, accepted, repeated, late, refused = send_all(desk, new)

    assert known == Sent(first, is_duplicate=True)
    assert accepted == Sent(new[1].message.id)
    assert repeated == Sent(new[1].message.id, is_duplicate=True)
    assert late == Sent(new[3].message.id)
    assert isinstance(refused, QueueFull)


def test_what_is_known_already_is_told_even_by_a_full_queue(desk):
    mail = desk.queue(max_messages=1)
    first = desk.send(mail, dedup_key="once")

    [answer] = unnumbered(desk.submit_send(mail, dedup_key="once").result())

    assert answer == Sent(first, is_duplicate=True)


def test_a_refused_message_does_not_keep_its_key(desk):
    mail = desk.queue(max_messages=1)
    desk.send(mail)
    new = [a_new_message(mail, now=desk.now, dedup_key="once") for _ in range(2)]
    answers = send_all(desk, new)
    assert [type(answer) for answer in answers] == [QueueFull, QueueFull]
    desk.complete(*desk.claim(mail))

    assert desk.send(mail, dedup_key="once")


def test_whoever_comes_behind_an_unfinished_one_of_its_group_is_blocked(desk):
    mail = desk.queue(ordering=Ordering.GROUP)
    new = [a_new_message(mail, now=desk.now, group=group) for group in ("a", "b", "a", None, None)]

    send_all(desk, new)
    late = desk.send(mail, group="b")

    blocked = [desk.get(n.message.id).is_blocked for n in new]
    assert blocked == [False, False, True, False, False]
    assert desk.get(late).is_blocked


def test_a_group_means_nothing_in_a_queue_that_is_not_ordered_by_it(desk):
    mail = desk.queue(ordering=Ordering.STANDARD)

    ids = [desk.send(mail, group="a") for _ in range(2)]

    assert desk.claim_ids(mail) == ids
