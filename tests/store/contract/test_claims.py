"""Claiming: which messages, in which order, for how long."""

import pytest

from penstock.domain.errors import QueueNotFound
from penstock.domain.limits import MINUTE
from penstock.domain.message import lifecycle
from penstock.domain.queue.counts import Counts
from penstock.ports.store import Claim, Claimed
from tests.factories import a_queue


def test_a_claim_changes_the_row_exactly_as_the_lifecycle_says(desk):
    mail = desk.queue()
    before = desk.get(desk.send(mail, group="a", kind="k", tags=("t",), expires_in_ms=MINUTE))
    desk.clock.advance(seconds=1)

    [claimed] = desk.claim(mail, lease_ms=5, claimed_by="worker-1")

    assert claimed == lifecycle.claim(before, now=desk.now, lease_ms=5, claimed_by="worker-1")
    assert desk.get(before.id) == claimed
    assert desk.counts(mail) == Counts(leased=1, sent_total=1, claimed_total=1)


def test_a_claim_brings_what_was_sent(desk):
    mail = desk.queue()
    desk.send(mail, body='"ä"', attributes={"a": "b"}, trace="t")

    [(_, content)] = desk.submit_claim(mail).result().messages

    assert (content.body, content.attributes, content.trace) == ('"ä"', {"a": "b"}, "t")


def test_a_message_sent_yesterday_comes_with_its_body(desk):
    mail = desk.queue()
    desk.send(mail, body='"old"')
    desk.clock.advance(days=1)
    desk.send(mail, body='"new"')

    claimed = desk.submit_claim(mail, 2).result().messages

    assert [content.body for _, content in claimed] == ['"old"', '"new"']


def test_the_most_urgent_message_is_claimed_first_and_equals_in_the_order_of_sending(desk):
    mail = desk.queue()
    for priority, body in [(5, "e"), (-1, "a"), (3, "c"), (-1, "b"), (3, "d")]:
        desk.send(mail, priority=priority, body=body)

    claimed = [desk.submit_claim(mail, limit).result().messages for limit in (1, 3, 10)]

    bodies = ["".join(content.body for _, content in part) for part in claimed]
    assert bodies == ["a", "bcd", "e"]


def test_a_claim_takes_no_more_than_its_limit(desk):
    mail = desk.queue()
    ids = [desk.send(mail) for _ in range(3)]

    assert desk.claim_ids(mail, 2) == ids[:2]
    assert desk.claim_ids(mail, 2) == ids[2:]
    assert desk.claim_ids(mail, 2) == []


def test_claims_made_together_share_the_messages_out_without_overlap(desk):
    mail = desk.queue()
    ids = [desk.send(mail) for _ in range(6)]

    with desk.together():
        tickets = [desk.submit_claim(mail, limit) for limit in (1, 3, 1, 5, 2)]

    shares = [[m.id for m, _ in ticket.result().messages] for ticket in tickets]
    assert shares == [ids[:1], ids[1:4], ids[4:5], ids[5:], []]


def test_claims_of_different_kinds_made_together_do_not_overlap_either(desk):
    mail = desk.queue()
    ids = [desk.send(mail) for _ in range(4)]

    with desk.together():
        tickets = [desk.submit_claim(mail, 2, claimed_by=who, lease_ms=9) for who in "abc"]

    shares = [ticket.result().messages for ticket in tickets]
    assert [m.id for share in shares for m, _ in share] == ids
    assert [m.leased_by for share in shares for m, _ in share] == ["a", "a", "b", "b"]


def test_a_claim_finds_what_is_sent_in_the_same_batch(desk):
    mail = desk.queue()

    with desk.together():
        claim = desk.submit_claim(mail)
        desk.submit_send(mail)

    assert [m.id for m, _ in claim.result().messages] == desk.sent_ids


def test_a_queue_that_is_not_there_spoils_no_other_claim_of_its_batch(desk):
    mail = desk.queue()
    desk.send(mail)

    with desk.together():
        lost = desk.submit_claim(a_queue(12345))
        found = desk.submit_claim(mail)

    assert len(found.result().messages) == 1
    with pytest.raises(QueueNotFound):
        lost.result()


def test_a_claim_may_ask_for_a_lease_of_its_own(desk):
    mail = desk.queue(lease_ms=MINUTE)
    desk.send(mail)
    desk.send(mail)

    [own] = desk.claim(mail, lease_ms=7)
    [of_the_queue] = desk.claim(mail)

    assert own.due_at == desk.now + 7
    assert of_the_queue.due_at == desk.now + MINUTE


def test_with_a_lease_of_no_length_a_claim_still_gives_each_message_once(desk):
    mail = desk.queue()
    ids = [desk.send(mail) for _ in range(2)]

    assert [m.id for m in desk.claim(mail, 10, lease_ms=0)] == ids
    assert [m.id for m in desk.claim(mail, 10, lease_ms=0)] == ids


def test_a_paused_queue_gives_nothing_and_keeps_taking(desk):
    mail = desk.queue()
    before = desk.send(mail)
    desk.pause(mail)
    during = desk.send(mail)

    assert desk.submit_claim(mail).result() == Claimed([])

    desk.pause(mail, is_paused=False)
    assert desk.claim_ids(mail) == [before, during]


def test_whoever_holds_a_message_of_a_paused_queue_may_finish_it(desk):
    mail = desk.queue()
    desk.send(mail)
    [held] = desk.claim(mail)
    desk.pause(mail)

    desk.complete(held)

    assert desk.counts(mail).done_total == 1


def test_an_empty_claim_tells_when_to_come_again(desk):
    mail = desk.queue(lease_ms=MINUTE)
    assert desk.submit_claim(mail).result() == Claimed([], None)

    desk.send(mail)
    [held] = desk.claim(mail)
    assert desk.submit_claim(mail).result() == Claimed([], held.due_at)

    desk.send(mail, delay_ms=5)
    assert desk.submit_claim(mail).result() == Claimed([], desk.now + 5)


def test_a_claim_that_got_something_need_not_know_when_to_come_again(desk):
    mail = desk.queue()
    desk.send(mail)
    desk.send(mail, delay_ms=5)

    assert desk.submit_claim(mail, 10).result().next_due_at is None


def test_of_claims_made_together_whoever_goes_away_empty_is_told_when_to_come_again(desk):
    mail = desk.queue()
    for _ in range(3):
        desk.send(mail)
    desk.send(mail, delay_ms=5)

    with desk.together():
        full, empty = desk.submit_claim(mail, 3), desk.submit_claim(mail, 1)

    assert len(full.result().messages) == 3
    assert empty.result() == Claimed([], desk.now + 5)


def test_each_claim_of_a_batch_goes_by_the_latest_clock_among_them(desk):
    mail = desk.queue(lease_ms=MINUTE)
    desk.send(mail, delay_ms=5)

    with desk.together():
        early = desk.submit_claim(mail)
        late = desk.store.claim(Claim(queue_no=mail.queue_no, now=desk.now + 5))

    claimed = early.result().messages + late.result().messages
    assert [m.leased_at for m, _ in claimed] == [desk.now + 5]
