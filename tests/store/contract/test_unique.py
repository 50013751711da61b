"""Keys that are taken until their message is claimed, or has ended, and are free in that moment."""

import pytest

from penstock.domain.limits import MINUTE
from penstock.domain.message import lifecycle
from penstock.domain.message.lease import Verb
from penstock.domain.queue.queue import DedupScope, DedupUntil, Ordering
from penstock.ports.store import Sent
from tests.factories import a_new_message, an_act

CLAIMED, ENDED = DedupUntil.CLAIMED, DedupUntil.ENDED


@pytest.fixture
def mail(desk):
    return desk.queue("mail", lease_ms=MINUTE, dedup_window_ms=0)


def is_taken(desk, queue, **draft) -> bool:
    """Asks by sending a message that does not hold the key; what comes of it is cancelled."""
    draft = {"dedup_key": "k", "dedup_until": ENDED} | draft
    [answer] = desk.submit_send(queue, **draft).result()
    assert isinstance(answer, Sent)
    if not answer.is_duplicate:
        desk.alter(answer.id, lambda m, _: lifecycle.cancel(m))
    return answer.is_duplicate


def send(desk, queue, until=ENDED, **draft) -> str:
    return desk.send(queue, **({"dedup_key": "k", "dedup_until": until} | draft))


def dead(desk, queue, held):
    desk.act(Verb.BURY, held)


ENDINGS = {
    "completed": lambda desk, queue, held: desk.complete(held),
    "completed with others": lambda desk, queue, held: desk.store.act(
        [an_act(Verb.COMPLETE, m, now=desk.now) for m in (held, *desk.claim(queue, 5))]
    ).result(),
    "buried": dead,
    "cancelled": lambda desk, queue, held: desk.act(Verb.CANCEL, held),
    "timed out": lambda desk, queue, held: desk.act(Verb.TIME_OUT, held),
    "purged": lambda desk, queue, held: desk.write(
        lambda s: s.messages.purge(queue.queue_no, limit=10, now=desk.now)
    ),
}


@pytest.mark.parametrize("end", ENDINGS)
def test_a_key_taken_until_the_end_is_free_when_it_comes_and_not_before(desk, mail, end):
    send(desk, mail)
    desk.send(mail)
    assert is_taken(desk, mail)
    [held] = desk.claim(mail)
    assert is_taken(desk, mail)
    desk.act(Verb.RELEASE, held)
    [held] = desk.claim(mail)
    assert is_taken(desk, mail)

    ENDINGS[end](desk, mail, held)

    assert not is_taken(desk, mail)


def test_it_outlives_every_window(desk):
    mail = desk.queue("mail", dedup_window_ms=5)
    send(desk, mail)
    desk.clock.advance(days=400)
    desk.write(lambda s: s.tidying.forget_dedup(now=desk.now, limit=100))

    assert is_taken(desk, mail)


def test_a_key_taken_until_the_claim_is_free_with_the_first_one_and_stays_so(desk, mail):
    send(desk, mail, CLAIMED)
    assert is_taken(desk, mail)

    [held] = desk.claim(mail)

    second = send(desk, mail, CLAIMED)
    desk.act(Verb.RELEASE, held)
    [again] = desk.claim(mail)
    assert again.id == held.id
    desk.complete(again)
    assert is_taken(desk, mail)
    assert desk.get(second).dedup_until is CLAIMED


@pytest.mark.parametrize("way", [{"in_a_row": True}, {"kinds": ("a",)}, {"claim_key": "x"}])
def test_every_kind_of_claim_frees_it(desk, way):
    orders = desk.queue(ordering=Ordering.GROUP, dedup_window_ms=0)
    send(desk, orders, CLAIMED, kind="a", group="g")

    assert len(desk.claim(orders, 5, **way)) == 1

    assert not is_taken(desk, orders)


@pytest.mark.parametrize("until", [CLAIMED, ENDED])
def test_what_ends_without_a_claim_frees_it_too(desk, mail, until):
    message_id = send(desk, mail, until)
    desk.alter(message_id, lambda m, _: lifecycle.bury(m))

    assert not is_taken(desk, mail)


@pytest.mark.parametrize("until", [CLAIMED, ENDED])
def test_what_expires_frees_it(desk, mail, until):
    send(desk, mail, until, expires_in_ms=5)
    desk.clock.advance(ms=5)
    desk.write(lambda s: s.tidying.expire(mail.queue_no, now=desk.now, limit=10))

    assert not is_taken(desk, mail)


def test_a_dead_letter_has_ended_and_its_redrive_takes_no_key(desk):
    letters = desk.queue("dead")
    mail = desk.queue("mail", dead_letter_queue="dead", max_attempts=1)
    first = send(desk, mail)
    desk.act(Verb.FAIL, *desk.claim(mail))

    second = send(desk, mail)
    desk.write(lambda s: s.messages.redrive(letters.queue_no, to=None, limit=10, now=desk.now))

    assert desk.get(first).queue_no == mail.queue_no
    assert desk.get(first).dedup_until is None
    by_id = {m.id: m for m in desk.claim(mail, 10)}
    desk.complete(by_id[first])
    assert is_taken(desk, mail)  # the second's, whatever becomes of the first
    desk.complete(by_id[second])
    assert not is_taken(desk, mail)


def test_in_the_scope_of_a_group_the_key_is_freed_in_its_group_alone(desk):
    mail = desk.queue(dedup_scope=DedupScope.GROUP, dedup_window_ms=0)
    send(desk, mail, group="a")
    send(desk, mail, group="b")
    [first] = desk.claim(mail)

    desk.complete(first)

    assert not is_taken(desk, mail, group="a")
    assert is_taken(desk, mail, group="b")


@pytest.mark.parametrize("scopes", [list(DedupScope), list(DedupScope)[::-1]])
def test_a_scope_that_has_changed_meanwhile_loses_no_key(desk, scopes):
    before, after = scopes
    mail = desk.queue(dedup_scope=before)
    send(desk, mail, group="g")
    desk.change(mail, dedup_scope=after)
    desk.complete(*desk.claim(mail))
    desk.change(mail, dedup_scope=before)

    assert not is_taken(desk, mail, group="g")


def test_nobody_gives_back_what_another_message_holds(desk):
    mail = desk.queue(dedup_scope=DedupScope.QUEUE)
    first = send(desk, mail, group="g")
    mail = desk.change(mail, dedup_scope=DedupScope.GROUP)
    second = send(desk, mail, group="g")  # known under the one scope, not under the other
    by_id = {m.id: m for m in desk.claim(mail, 5)}

    desk.complete(by_id[first])

    assert is_taken(desk, mail, group="g")
    desk.complete(by_id[second])
    assert not is_taken(desk, mail, group="g")


def test_a_message_whose_key_is_counted_by_a_window_leaves_the_others_alone(desk):
    mail = desk.queue(dedup_window_ms=MINUTE)
    desk.send(mail, dedup_key="k")
    desk.complete(*desk.claim(mail))

    assert is_taken(desk, mail)


def test_of_two_in_one_batch_the_second_is_a_duplicate(desk, mail):
    new = [a_new_message(mail, now=desk.now, dedup_key="k", dedup_until=ENDED) for _ in range(2)]
    desk.sent_ids += [n.message.id for n in new]

    first, second = desk.store.send(new).result()

    assert (first.is_duplicate, second.is_duplicate) == (False, True)
    assert second.id == first.id


def test_one_that_ends_in_the_batch_of_its_successor_frees_the_key_for_later_ones(desk, mail):
    send(desk, mail)
    [held] = desk.claim(mail)

    with desk.together():
        act = desk.submit_act(Verb.COMPLETE, held)
        sent = desk.submit_send(mail, dedup_key="k", dedup_until=ENDED)

    act.result()
    [answer] = sent.result()
    assert answer.is_duplicate  # sends come first in a batch
    assert not is_taken(desk, mail)


def test_a_purge_of_keys_leaves_those_that_live_messages_hold(desk, mail):
    send(desk, mail)

    assert desk.write(lambda s: s.messages.forget_keys(mail.queue_no, limit=100)) == 0
    assert is_taken(desk, mail)
