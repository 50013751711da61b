"""Dedup keys that are taken until their message is claimed or has ended."""

import pytest

from penstock.domain.limits import MINUTE
from penstock.domain.message import lifecycle
from penstock.domain.message.lease import Verb
from penstock.domain.queue.queue import DedupScope, DedupUntil, Ordering
from penstock.ports.store import Sent
from tests.factories import a_new_message, an_act

CLAIMED, ENDED = DedupUntil.CLAIMED, DedupUntil.ENDED


@pytest.fixture
def mail(driver):
    return driver.queue("mail", lease_ms=MINUTE, dedup_window_ms=0)


def is_taken(driver, queue, **draft) -> bool:
    """Sends a message that does not take the key; if it is accepted, it is cancelled."""
    draft = {"dedup_key": "k", "dedup_until": ENDED} | draft
    [answer] = driver.submit_send(queue, **draft).result()
    assert isinstance(answer, Sent)
    if not answer.is_duplicate:
        driver.alter(answer.id, lambda m, _: lifecycle.cancel(m))
    return answer.is_duplicate


def send(driver, queue, until=ENDED, **draft) -> str:
    return driver.send(queue, **({"dedup_key": "k", "dedup_until": until} | draft))


def dead(driver, queue, held):
    driver.act(Verb.BURY, held)


ENDINGS = {
    "completed": lambda driver, queue, held: driver.complete(held),
    "completed with others": lambda driver, queue, held: driver.store.act(
        [an_act(Verb.COMPLETE, m, now=driver.now) for m in (held, *driver.claim(queue, 5))]
    ).result(),
    "buried": dead,
    "cancelled": lambda driver, queue, held: driver.act(Verb.CANCEL, held),
    "timed out": lambda driver, queue, held: driver.act(Verb.TIME_OUT, held),
    "purged": lambda driver, queue, held: driver.write(
        lambda s: s.messages.purge(queue.queue_no, limit=10, now=driver.now)
    ),
}


@pytest.mark.parametrize("end", ENDINGS)
def test_a_key_taken_until_the_end_is_free_then_and_not_before(driver, mail, end):
    send(driver, mail)
    driver.send(mail)
    assert is_taken(driver, mail)
    [held] = driver.claim(mail)
    assert is_taken(driver, mail)
    driver.act(Verb.RELEASE, held)
    [held] = driver.claim(mail)
    assert is_taken(driver, mail)

    ENDINGS[end](driver, mail, held)

    assert not is_taken(driver, mail)


def test_it_outlives_every_window(driver):
    mail = driver.queue("mail", dedup_window_ms=5)
    send(driver, mail)
    driver.clock.advance(days=400)
    driver.write(lambda s: s.maintenance.forget_dedup(now=driver.now, limit=100))

    assert is_taken(driver, mail)


def test_a_key_taken_until_the_claim_is_free_with_the_first_one_and_stays_so(driver, mail):
    send(driver, mail, CLAIMED)
    assert is_taken(driver, mail)

    [held] = driver.claim(mail)

    second = send(driver, mail, CLAIMED)
    driver.act(Verb.RELEASE, held)
    [again] = driver.claim(mail)
    assert again.id == held.id
    driver.complete(again)
    assert is_taken(driver, mail)
    assert driver.get(second).dedup_until is CLAIMED


@pytest.mark.parametrize("way", [{"in_a_row": True}, {"kinds": ("a",)}, {"claim_key": "x"}])
def test_every_kind_of_claim_frees_it(driver, way):
    orders = driver.queue(ordering=Ordering.GROUP, dedup_window_ms=0)
    send(driver, orders, CLAIMED, kind="a", group="g")

    assert len(driver.claim(orders, 5, **way)) == 1

    assert not is_taken(driver, orders)


@pytest.mark.parametrize("until", [CLAIMED, ENDED])
def test_a_message_that_ends_without_a_claim_frees_its_key_too(driver, mail, until):
    message_id = send(driver, mail, until)
    driver.alter(message_id, lambda m, _: lifecycle.bury(m))

    assert not is_taken(driver, mail)


@pytest.mark.parametrize("until", [CLAIMED, ENDED])
def test_a_message_that_expires_frees_its_key(driver, mail, until):
    send(driver, mail, until, expires_in_ms=5)
    driver.clock.advance(ms=5)
    driver.write(lambda s: s.maintenance.expire(mail.queue_no, now=driver.now, limit=10))

    assert not is_taken(driver, mail)


def test_a_dead_letter_has_ended_and_its_redrive_takes_no_key(driver):
    letters = driver.queue("dead")
    mail = driver.queue("mail", dead_letter_queue="dead", max_attempts=1)
    first = send(driver, mail)
    driver.act(Verb.FAIL, *driver.claim(mail))

    second = send(driver, mail)
    driver.write(lambda s: s.messages.redrive(letters.queue_no, to=None, limit=10, now=driver.now))

    assert driver.get(first).queue_no == mail.queue_no
    assert driver.get(first).dedup_until is None
    by_id = {m.id: m for m in driver.claim(mail, 10)}
    driver.complete(by_id[first])
    assert is_taken(driver, mail)  # the second's, whatever becomes of the first
    driver.complete(by_id[second])
    assert not is_taken(driver, mail)


def test_in_the_scope_of_a_group_the_key_is_freed_in_its_group_alone(driver):
    mail = driver.queue(dedup_scope=DedupScope.GROUP, dedup_window_ms=0)
    send(driver, mail, group="a")
    send(driver, mail, group="b")
    [first] = driver.claim(mail)

    driver.complete(first)

    assert not is_taken(driver, mail, group="a")
    assert is_taken(driver, mail, group="b")


@pytest.mark.parametrize("scopes", [list(DedupScope), list(DedupScope)[::-1]])
def test_a_scope_that_has_changed_meanwhile_loses_no_key(driver, scopes):
    before, after = scopes
    mail = driver.queue(dedup_scope=before)
    send(driver, mail, group="g")
    driver.change(mail, dedup_scope=after)
    driver.complete(*driver.claim(mail))
    driver.change(mail, dedup_scope=before)

    assert not is_taken(driver, mail, group="g")


def test_a_message_does_not_release_a_key_that_another_one_holds(driver):
    mail = driver.queue(dedup_scope=DedupScope.QUEUE)
    first = send(driver, mail, group="g")
    mail = driver.change(mail, dedup_scope=DedupScope.GROUP)
    second = send(driver, mail, group="g")  # known under the one scope, not under the other
    by_id = {m.id: m for m in driver.claim(mail, 5)}

    driver.complete(by_id[first])

    assert is_taken(driver, mail, group="g")
    driver.complete(by_id[second])
    assert not is_taken(driver, mail, group="g")


def test_a_message_whose_key_is_counted_by_a_window_leaves_the_others_alone(driver):
    mail = driver.queue(dedup_window_ms=MINUTE)
    driver.send(mail, dedup_key="k")
    driver.complete(*driver.claim(mail))

    assert is_taken(driver, mail)


def test_the_second_message_of_a_batch_with_the_same_key_is_a_duplicate(driver, mail):
    new = [a_new_message(mail, now=driver.now, dedup_key="k", dedup_until=ENDED) for _ in range(2)]
    driver.sent_ids += [n.message.id for n in new]

    first, second = driver.store.send(new).result()

    assert (first.is_duplicate, second.is_duplicate) == (False, True)
    assert second.id == first.id


def test_one_that_ends_in_the_batch_of_its_successor_frees_the_key_for_later_ones(driver, mail):
    send(driver, mail)
    [held] = driver.claim(mail)

    with driver.together():
        act = driver.submit_act(Verb.COMPLETE, held)
        sent = driver.submit_send(mail, dedup_key="k", dedup_until=ENDED)

    act.result()
    [answer] = sent.result()
    assert answer.is_duplicate  # sends come first in a batch
    assert not is_taken(driver, mail)


def test_a_purge_of_keys_leaves_those_that_live_messages_hold(driver, mail):
    send(driver, mail)

    assert driver.write(lambda s: s.messages.forget_keys(mail.queue_no, limit=100)) == 0
    assert is_taken(driver, mail)
