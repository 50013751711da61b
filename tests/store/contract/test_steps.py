"""Durable steps: recorded once, by the lease holder only, and kept as long as the message."""

from __future__ import annotations

import pytest

from penstock.domain.errors import LeaseLost, TooLarge
from penstock.domain.limits import DAY, MINUTE
from penstock.domain.message import step as steps
from penstock.domain.message import transfer
from penstock.domain.message.lease import Lease, Verb
from penstock.domain.message.lifecycle import Message
from penstock.domain.message.step import RecordedStep, StepTimes
from penstock.domain.queue.queue import Queue
from tests.store.driver import StoreDriver

MUCH = 1_000_000


@pytest.fixture
def mail(driver: StoreDriver) -> Queue:
    return driver.queue("mail", lease_ms=MINUTE)


@pytest.fixture
def held(driver: StoreDriver, mail: Queue) -> Message:
    driver.send(mail)
    [held] = driver.claim(mail)
    return held


def record(
    driver: StoreDriver, held: Message, name: str = "charge", outcome: str = "1"
) -> tuple[RecordedStep, bool]:
    lease = Lease.of(held)
    return driver.write(lambda s: s.steps.record(lease, name, outcome, StepTimes(), now=driver.now))


def names(driver: StoreDriver, held: Message) -> list[str]:
    found, is_last = driver.read(
        lambda s: s.steps.page(held.message_no, after_no=0, limit=2_000, max_bytes=MUCH)
    )
    assert is_last
    return [step.name for step in found]


def test_a_step_is_recorded_once_and_keeps_its_first_outcome(
    driver: StoreDriver, held: Message
) -> None:
    first = record(driver, held, "charge", '{"payment": 1}')
    driver.clock.advance(seconds=1)
    again = record(driver, held, "charge", '{"payment": 2}')

    expected = RecordedStep(1, "charge", '{"payment": 1}', driver.now - 1_000)
    assert (first, again) == ((expected, True), (expected, False))


def test_steps_are_listed_in_the_order_in_which_they_were_recorded(
    driver: StoreDriver, held: Message
) -> None:
    for name in ("c", "a", "b"):
        record(driver, held, name)

    assert names(driver, held) == ["c", "a", "b"]


def test_a_page_of_steps_ends_at_its_limit_or_where_the_outcomes_fill_it(
    driver: StoreDriver, held: Message
) -> None:
    for number in range(4):
        record(driver, held, f"step {number}", '"12345678"')

    def page(after_no: int, limit: int, max_bytes: int) -> tuple[list[int], bool]:
        found, is_last = driver.read(
            lambda s: s.steps.page(
                held.message_no, after_no=after_no, limit=limit, max_bytes=max_bytes
            )
        )
        return [step.step_no for step in found], is_last

    assert page(0, 3, MUCH) == ([1, 2, 3], False)
    assert page(3, 3, MUCH) == ([4], True)
    assert page(0, 4, 20) == ([1, 2], False)
    assert page(2, 4, 1) == ([3], False)
    assert page(4, 4, MUCH) == ([], True)


def test_a_lost_lease_records_nothing(driver: StoreDriver, mail: Queue, held: Message) -> None:
    driver.act(Verb.RELEASE, held)
    [second] = driver.claim(mail)

    with pytest.raises(LeaseLost):
        record(driver, held)

    assert names(driver, held) == []
    record(driver, second)
    driver.complete(second)
    with pytest.raises(LeaseLost):
        record(driver, second, "after its end")
    assert names(driver, second) == ["charge"]


def test_a_lease_from_before_a_power_cut_records_nothing(
    driver: StoreDriver, held: Message
) -> None:
    """The same lease number may be assigned again; the instant of the claim differs."""
    before = Lease(held.message_no, held.lease_no, held.queue_no, (held.leased_at or 0) - 1)

    with pytest.raises(LeaseLost):
        driver.write(lambda s: s.steps.record(before, "charge", "1", StepTimes(), now=driver.now))


def test_a_later_attempt_finds_the_steps_of_earlier_ones(
    driver: StoreDriver, mail: Queue, held: Message
) -> None:
    record(driver, held, "first")
    driver.act(Verb.FAIL, held, delay_ms=0, text="broken")
    [second] = driver.claim(mail)
    record(driver, second, "second")
    driver.act(Verb.BURY, second)
    driver.alter(held.id, lambda m, queue: transfer.redrive(m, queue, now=driver.now))
    [third] = driver.claim(mail)

    assert record(driver, third, "first")[1] is False
    assert names(driver, third) == ["first", "second"]


def test_a_message_takes_a_limited_number_of_steps(
    driver: StoreDriver, held: Message, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "MAX_STEPS", 2)
    record(driver, held, "1")
    record(driver, held, "2")

    with pytest.raises(TooLarge, match="at most 2 steps"):
        record(driver, held, "3")

    assert names(driver, held) == ["1", "2"]
    assert record(driver, held, "2")[1] is False


def test_steps_leave_with_their_day_unless_their_message_is_still_there(
    driver: StoreDriver, mail: Queue
) -> None:
    driver.send_many(mail, 3)
    driver.keeps_history = False
    done, dead, live = driver.claim(mail, 3)
    for held in (done, dead, live):
        record(driver, held)
    driver.complete(done)
    driver.act(Verb.BURY, dead)
    day = driver.now // DAY
    driver.clock.advance(days=2)

    driver.write(lambda s: s.maintenance.drop_day(day, now=driver.now))

    assert [names(driver, held) for held in (done, dead, live)] == [[], ["charge"], ["charge"]]


def test_steps_of_messages_that_ended_later_leave_with_a_later_day(
    driver: StoreDriver, mail: Queue, held: Message
) -> None:
    driver.keeps_history = False
    record(driver, held)
    first_day = driver.now // DAY
    driver.clock.advance(days=1)
    driver.write(lambda s: s.maintenance.prepare_days(now=driver.now))
    driver.write(lambda s: s.maintenance.drop_day(first_day, now=driver.now))
    assert names(driver, held) == ["charge"]
    driver.complete(held)
    driver.clock.advance(days=1)

    driver.write(lambda s: s.maintenance.drop_day(first_day + 1, now=driver.now))

    assert names(driver, held) == []
