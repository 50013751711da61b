"""A queue that limits the number of leases at the same time."""

import pytest

from penstock.domain.errors import LeaseLost
from penstock.domain.limits import MINUTE
from penstock.domain.message.lease import Verb
from penstock.domain.queue.queue import Ordering
from penstock.ports.store import Acted
from tests.factories import an_act


@pytest.fixture
def mail(driver):
    return driver.queue("mail", max_leased=2, lease_ms=MINUTE)


@pytest.fixture
def wakeups(driver):
    received = []
    driver.store.listen(lambda woken: received.append(dict(woken)))

    def look():
        seen = list(received)
        received.clear()
        return seen

    return look


def test_no_more_messages_are_leased_than_the_queue_allows(driver, mail):
    ids = driver.send_many(mail, 5)

    assert driver.claim_ids(mail) == ids[:2]
    assert driver.claim_ids(mail) == []
    assert driver.counts(mail).leased == 2


def test_claims_of_one_batch_share_the_slots_that_are_left(driver, mail):
    ids = driver.send_many(mail, 5)
    with driver.together():
        tickets = [driver.submit_claim(mail, 1) for _ in range(2)]
        tickets.append(driver.submit_claim(mail, 5, claimed_by="another"))
        tickets.append(driver.submit_claim(mail, 5, claim_key="mine"))

    claimed = [[m.id for m, _ in ticket.result(30).messages] for ticket in tickets]

    assert claimed == [[ids[0]], [ids[1]], [], []]


@pytest.mark.parametrize("verb", [v for v in Verb if v is not Verb.EXTEND])
def test_the_end_of_a_lease_makes_room_and_wakes_waiting_claims(driver, mail, wakeups, verb):
    driver.send_many(mail, 5)
    held = driver.claim(mail, 5)
    wakeups()

    assert isinstance(driver.act(verb, held[0], delay_ms=None), Acted)

    assert any(mail.queue_no in woken for woken in wakeups())
    assert len(driver.claim(mail, 5)) == 1
    assert driver.counts(mail).leased == 2


def test_messages_that_a_claim_completes_make_room_for_those_that_it_leases(driver, mail):
    ids = driver.send_many(mail, 5)
    held = driver.claim(mail, 5)
    finishing = [an_act(Verb.COMPLETE, m, now=driver.now) for m in held]

    assert [m.id for m in driver.claim(mail, 5, finishing=finishing)] == ids[2:4]


def test_an_expired_lease_makes_room(driver, mail):
    ids = driver.send_many(mail, 3)
    driver.claim(mail, 5)
    driver.clock.advance(minutes=1)

    assert driver.claim_ids(mail) == ids[:2]


def test_a_claim_without_room_reports_when_a_lease_expires(driver, mail):
    driver.send_many(mail, 5)
    driver.claim(mail, 5)

    assert driver.submit_claim(mail, 5).result(30).next_due_at == driver.now + MINUTE


def test_a_repeated_claim_needs_no_room(driver, mail):
    ids = driver.send_many(mail, 5)
    driver.claim(mail, 5, claim_key="mine")

    assert [m.id for m in driver.claim(mail, 5, claim_key="mine")] == ids[:2]
    assert driver.counts(mail).leased == 2


def test_a_run_takes_no_more_than_there_are_slots(driver):
    orders = driver.queue("orders", ordering=Ordering.GROUP, max_leased=2)
    ids = driver.send_many(orders, 4, group="a")

    assert [m.id for m in driver.claim(orders, 4, in_a_row=True)] == ids[:2]
    assert driver.claim(orders, 4, in_a_row=True) == []


def test_a_late_extension_does_not_exceed_the_limit(driver, mail):
    driver.send_many(mail, 3)
    late, _ = driver.claim(mail, 5)
    driver.act(Verb.RELEASE, late)
    driver.claim(mail, kinds=("none of them",))

    assert isinstance(driver.act(Verb.EXTEND, late, is_late_ok=True), LeaseLost)


def test_a_limit_below_the_number_of_leases_ends_none_and_allows_no_new_ones(driver, mail):
    driver.send_many(mail, 6)
    held = driver.claim(mail, 5)

    driver.tune(mail, max_leased=1)
    driver.complete(held[0])
    assert driver.claim(mail, 5) == []

    driver.complete(held[1])
    assert len(driver.claim(mail, 5)) == 1


def test_a_limit_that_is_raised_or_removed_takes_effect_at_once(driver, mail, wakeups):
    driver.send_many(mail, 6)
    driver.claim(mail, 5)
    wakeups()

    driver.tune(mail, max_leased=3)
    assert any(woken.get(mail.queue_no) for woken in wakeups())
    assert len(driver.claim(mail, 5)) == 1

    driver.tune(mail, max_leased=None)
    assert len(driver.claim(mail, 5)) == 3
