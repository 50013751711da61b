"""A queue with a limited rate of claims."""

import pytest

from penstock.domain.limits import MINUTE, SECOND
from penstock.domain.queue.rate import Rate


@pytest.fixture
def mail(driver):
    """Two a second, three at once."""
    return driver.queue("mail", rate=Rate(2, SECOND, 3), lease_ms=MINUTE)


def test_claims_take_a_burst_and_then_what_the_rate_allows(driver, mail):
    ids = driver.send_many(mail, 10)

    assert driver.claim_ids(mail) == ids[:3]
    assert driver.claim_ids(mail) == []
    driver.clock.advance(ms=499)
    assert driver.claim_ids(mail) == []
    driver.clock.advance(ms=1)
    assert driver.claim_ids(mail) == ids[3:4]
    driver.clock.advance(minutes=5)
    assert driver.claim_ids(mail) == ids[:3]  # their leases ran out


def test_an_empty_claim_reports_when_the_rate_allows_the_next(driver, mail):
    driver.send_many(mail, 10)
    driver.claim(mail, 10)

    assert driver.submit_claim(mail, 10).result(30).next_due_at == driver.now + 500


def test_an_earlier_due_date_is_reported_instead(driver, mail):
    driver.send_many(mail, 3)
    driver.send(mail, delay_ms=100)
    driver.claim(mail, 3)

    assert driver.submit_claim(mail, 10).result(30).next_due_at == driver.now + 100


def test_claims_of_one_batch_share_what_the_rate_allows(driver, mail):
    driver.send_many(mail, 10)
    with driver.together():
        tickets = [driver.submit_claim(mail, 2, claimed_by=name) for name in "abc"]

    assert [len(ticket.result(30).messages) for ticket in tickets] == [2, 1, 0]


def test_a_redelivery_is_charged_again_but_a_repeated_claim_is_not(driver, mail):
    driver.send_many(mail, 3)

    driver.claim(mail, 3, claim_key="mine")
    assert len(driver.claim(mail, 3, claim_key="mine")) == 3

    driver.clock.advance(ms=500)
    driver.send(mail)
    assert len(driver.claim(mail, 3)) == 1


def test_another_rate_counts_at_once(driver, mail):
    driver.send_many(mail, 20)
    driver.claim(mail, 10)

    driver.tune(mail, rate=Rate(1, MINUTE, 5))
    assert len(driver.claim(mail, 10)) == 5
    assert driver.claim(mail, 10) == []

    driver.tune(mail, rate=None)
    assert len(driver.claim(mail, 100)) == 12


def test_unrelated_settings_do_not_refill_a_bucket(driver, mail):
    driver.send_many(mail, 20)
    driver.claim(mail, 10)

    driver.tune(mail, max_attempts=7)
    assert driver.claim(mail, 10) == []
    driver.tune(mail, max_leased=100, is_fair=True)
    assert driver.claim(mail, 10) == []


def test_a_bucket_is_forgotten_when_it_is_full_again(driver, mail):
    driver.send_many(mail, 3)
    driver.claim(mail, 2)

    driver.clock.advance(ms=999)
    assert driver.write(lambda s: s.maintenance.forget_rates(now=driver.now, limit=10)) == 0
    driver.clock.advance(ms=1)
    assert driver.write(lambda s: s.maintenance.forget_rates(now=driver.now, limit=10)) == 1
