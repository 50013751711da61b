"""Claiming: which messages, in which order, for how long."""

import pytest

from penstock.domain.errors import QueueNotFound
from penstock.domain.limits import MINUTE
from penstock.domain.message import lifecycle
from penstock.domain.queue.queue import Counts
from penstock.ports.store import Claim, Claimed
from tests.factories import a_queue


def test_a_claim_changes_the_row_exactly_as_the_lifecycle_says(driver):
    mail = driver.queue()
    before = driver.get(driver.send(mail, group="a", kind="k", tags=("t",), expires_in_ms=MINUTE))
    driver.clock.advance(seconds=1)

    [claimed] = driver.claim(mail, lease_ms=5, claimed_by="worker-1")

    assert claimed == lifecycle.claim(before, now=driver.now, lease_ms=5, claimed_by="worker-1")
    assert driver.get(before.id) == claimed
    assert driver.counts(mail) == Counts(leased=1, sent_total=1, claimed_total=1)


def test_a_claim_brings_what_was_sent(driver):
    mail = driver.queue()
    driver.send(mail, body='"ä"', attributes={"a": "b"}, trace="t")

    [(_, content)] = driver.submit_claim(mail).result().messages

    assert (content.body, content.attributes, content.trace) == ('"ä"', {"a": "b"}, "t")


def test_a_message_sent_yesterday_comes_with_its_body(driver):
    mail = driver.queue()
    driver.send(mail, body='"old"')
    driver.clock.advance(days=1)
    driver.send(mail, body='"new"')

    claimed = driver.submit_claim(mail, 2).result().messages

    assert [content.body for _, content in claimed] == ['"old"', '"new"']


def test_the_most_urgent_message_is_claimed_first_and_equals_in_the_order_of_sending(driver):
    mail = driver.queue()
    for priority, body in [(5, "e"), (-1, "a"), (3, "c"), (-1, "b"), (3, "d")]:
        driver.send(mail, priority=priority, body=body)

    claimed = [driver.submit_claim(mail, limit).result().messages for limit in (1, 3, 10)]

    bodies = ["".join(content.body for _, content in part) for part in claimed]
    assert bodies == ["a", "bcd", "e"]


def test_a_claim_takes_no_more_than_its_limit(driver):
    mail = driver.queue()
    ids = [driver.send(mail) for _ in range(3)]

    assert driver.claim_ids(mail, 2) == ids[:2]
    assert driver.claim_ids(mail, 2) == ids[2:]
    assert driver.claim_ids(mail, 2) == []


def test_claims_made_together_share_the_messages_out_without_overlap(driver):
    mail = driver.queue()
    ids = [driver.send(mail) for _ in range(6)]

    with driver.together():
        tickets = [driver.submit_claim(mail, limit) for limit in (1, 3, 1, 5, 2)]

    shares = [[m.id for m, _ in ticket.result().messages] for ticket in tickets]
    assert shares == [ids[:1], ids[1:4], ids[4:5], ids[5:], []]


def test_claims_of_different_kinds_made_together_do_not_overlap_either(driver):
    mail = driver.queue()
    ids = [driver.send(mail) for _ in range(4)]

    with driver.together():
        tickets = [driver.submit_claim(mail, 2, claimed_by=who, lease_ms=9) for who in "abc"]

    shares = [ticket.result().messages for ticket in tickets]
    assert [m.id for share in shares for m, _ in share] == ids
    assert [m.leased_by for share in shares for m, _ in share] == ["a", "a", "b", "b"]


def test_a_claim_finds_what_is_sent_in_the_same_batch(driver):
    mail = driver.queue()

    with driver.together():
        claim = driver.submit_claim(mail)
        driver.submit_send(mail)

    assert [m.id for m, _ in claim.result().messages] == driver.sent_ids


def test_a_missing_queue_does_not_affect_other_claims_of_the_batch(driver):
    mail = driver.queue()
    driver.send(mail)

    with driver.together():
        lost = driver.submit_claim(a_queue(12345))
        found = driver.submit_claim(mail)

    assert len(found.result().messages) == 1
    with pytest.raises(QueueNotFound):
        lost.result()


def test_a_claim_may_ask_for_a_lease_of_its_own(driver):
    mail = driver.queue(lease_ms=MINUTE)
    driver.send(mail)
    driver.send(mail)

    [own] = driver.claim(mail, lease_ms=7)
    [of_the_queue] = driver.claim(mail)

    assert own.due_at == driver.now + 7
    assert of_the_queue.due_at == driver.now + MINUTE


def test_with_a_lease_of_length_0_a_claim_returns_each_message_once(driver):
    mail = driver.queue()
    ids = [driver.send(mail) for _ in range(2)]

    assert [m.id for m in driver.claim(mail, 10, lease_ms=0)] == ids
    assert [m.id for m in driver.claim(mail, 10, lease_ms=0)] == ids


def test_a_paused_queue_accepts_sends_but_no_claims(driver):
    mail = driver.queue()
    before = driver.send(mail)
    driver.pause(mail)
    during = driver.send(mail)

    assert driver.submit_claim(mail).result() == Claimed([])

    driver.pause(mail, is_paused=False)
    assert driver.claim_ids(mail) == [before, during]


def test_a_lease_on_a_message_of_a_paused_queue_can_be_completed(driver):
    mail = driver.queue()
    driver.send(mail)
    [held] = driver.claim(mail)
    driver.pause(mail)

    driver.complete(held)

    assert driver.counts(mail).done_total == 1


def test_an_empty_claim_reports_when_to_try_again(driver):
    mail = driver.queue(lease_ms=MINUTE)
    assert driver.submit_claim(mail).result() == Claimed([], None)

    driver.send(mail)
    [held] = driver.claim(mail)
    assert driver.submit_claim(mail).result() == Claimed([], held.due_at)

    driver.send(mail, delay_ms=5)
    assert driver.submit_claim(mail).result() == Claimed([], driver.now + 5)


def test_a_claim_with_messages_does_not_report_when_to_try_again(driver):
    mail = driver.queue()
    driver.send(mail)
    driver.send(mail, delay_ms=5)

    assert driver.submit_claim(mail, 10).result().next_due_at is None


def test_an_empty_claim_in_a_batch_reports_when_to_try_again(driver):
    mail = driver.queue()
    for _ in range(3):
        driver.send(mail)
    driver.send(mail, delay_ms=5)

    with driver.together():
        full, empty = driver.submit_claim(mail, 3), driver.submit_claim(mail, 1)

    assert len(full.result().messages) == 3
    assert empty.result() == Claimed([], driver.now + 5)


def test_the_claims_of_a_batch_use_the_latest_of_their_clocks(driver):
    mail = driver.queue(lease_ms=MINUTE)
    driver.send(mail, delay_ms=5)

    with driver.together():
        early = driver.submit_claim(mail)
        late = driver.store.claim(Claim(queue_no=mail.queue_no, now=driver.now + 5))

    claimed = early.result().messages + late.result().messages
    assert [m.leased_at for m, _ in claimed] == [driver.now + 5]
