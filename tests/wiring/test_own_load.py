"""Load of our own queues: counts as they are, rates as the counters grow."""

from __future__ import annotations

import pytest

from penstock.domain.errors import QueueUnknown, SourceUnavailable, StoreUnavailable
from penstock.domain.message.lease import Verb
from penstock.domain.scaling.recommendation import Sample, Staged
from penstock.wiring.autoscaling import OwnLoad
from tests.clocks import NOON
from tests.store.driver import StoreDriver


@pytest.fixture
def load(store) -> OwnLoad:
    return OwnLoad(store)


def test_ready_and_leased_messages_are_counted_separately(driver, load):
    mail = driver.queue("mail")
    driver.send_many(mail, 5)
    driver.send(mail, delay_ms=60_000)
    driver.claim(mail, 2)

    sample = load.read("mail", None, now=driver.now)

    assert sample == Sample(ready=3, leased=2, oldest_ms=0)


def test_the_age_counts_from_when_a_message_could_be_claimed(driver, load):
    mail = driver.queue("mail")
    assert load.read("mail", None, now=driver.now).oldest_ms is None
    driver.send(mail, delay_ms=60_000)
    driver.clock.advance(seconds=10)
    driver.send(mail)
    driver.clock.advance(seconds=30)

    sample = load.read("mail", None, now=driver.now)
    driver.claim(mail)
    after = load.read("mail", None, now=driver.now)

    assert (sample.ready, sample.oldest_ms) == (1, 30_000)
    assert (after.ready, after.oldest_ms) == (0, None)


def test_rates_count_ended_and_sent_messages_per_second_since_the_last_reading(driver, load):
    mail = driver.queue("mail", max_attempts=1)
    driver.send_many(mail, 10)
    load.read("mail", None, now=driver.now)
    driver.send_many(mail, 6)
    done, lost, *_ = driver.claim(mail, 3)
    driver.complete(done)
    driver.act(Verb.FAIL, lost, text="no")  # its only attempt: it is dead

    driver.clock.advance(seconds=4)
    sample = load.read("mail", None, now=driver.now)
    driver.clock.advance(seconds=4)
    later = load.read("mail", None, now=driver.now)

    assert (sample.consume_rate, sample.publish_rate) == (0.5, 1.5)
    assert (later.consume_rate, later.publish_rate) == (0.0, 0.0)


def test_attempts_that_will_be_retried_do_not_count_as_consumed(driver, load):
    mail = driver.queue("mail", max_attempts=5)
    driver.send(mail)
    load.read("mail", None, now=driver.now)
    [message] = driver.claim(mail)
    driver.act(Verb.FAIL, message, text="no")

    driver.clock.advance(seconds=1)

    assert load.read("mail", None, now=driver.now).consume_rate == 0.0


def test_two_readings_at_almost_the_same_time_return_the_same_rate(driver, load):
    mail = driver.queue("mail")
    load.read("mail", None, now=driver.now)
    driver.send_many(mail, 2)
    driver.clock.advance(seconds=2)
    first = load.read("mail", None, now=driver.now)
    driver.send_many(mail, 100)

    for ms in (0, 499):
        assert (
            load.read("mail", None, now=driver.now + ms).publish_rate == first.publish_rate == 1.0
        )


def test_a_queue_that_was_created_again_starts_over(driver, load):
    mail = driver.queue("mail")
    driver.send_many(mail, 5)
    load.read("mail", None, now=driver.now)
    driver.write(lambda s: s.messages.purge(mail.queue_no, limit=100, now=driver.now))
    driver.write(lambda s: s.queues.remove(mail.queue_no, now=driver.now))
    driver.send_many(driver.queue("mail"), 8)  # more than the one before had ever got

    driver.clock.advance(seconds=1)

    assert load.read("mail", None, now=driver.now) == Sample(ready=8, oldest_ms=1_000)


def test_queues_with_longer_names_after_the_indicator_are_staging_queues(driver: StoreDriver, load):
    for name in ("mail", "mail.stage.", "mailstage", "mail.other.a"):
        driver.queue(name)
    stage = [driver.queue(f"mail.stage.{n}") for n in "ab"]
    driver.send_many(stage[0], 3)
    load.read("mail", ".stage.", now=driver.now)
    driver.send_many(stage[0], 2)
    driver.clock.advance(seconds=2)

    sample = load.read("mail", ".stage.", now=driver.now)

    assert sample.staged == (Staged("mail.stage.a", 5, 1.0), Staged("mail.stage.b", 0, 0.0))
    assert load.read("mail", None, now=driver.now).staged == ()


def test_a_queue_that_does_not_exist_is_unknown(load):
    with pytest.raises(QueueUnknown, match="'unknown'"):
        load.read("unknown", None, now=NOON)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (StoreUnavailable("cannot reach db.internal:5432"), "the store cannot be read"),
        (TimeoutError(), "the store cannot be read: no answer within 10 s"),
    ],
)
def test_a_store_that_cannot_be_read_is_an_unavailable_source_and_its_address_stays_secret(
    error, text
):
    class Broken:
        def read(self, what):
            return self

        def result(self, timeout):
            assert timeout == 10.0
            raise error

    with pytest.raises(SourceUnavailable, match=f"^{text}$"):
        OwnLoad(Broken()).read("mail", None, now=NOON)  # type: ignore[arg-type]


def test_the_pressure_on_a_store_is_unknown(load):
    assert load.pressure(now=NOON) is None
