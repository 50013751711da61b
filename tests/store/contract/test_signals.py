"""Signals and the messages that wait for them: no signal is missed, none is delivered twice."""

from __future__ import annotations

import pytest

from penstock.domain.errors import LeaseLost
from penstock.domain.limits import DAY, HOUR, MINUTE
from penstock.domain.message import lifecycle
from penstock.domain.message.lease import Lease, Verb
from penstock.domain.message.lifecycle import Message, State
from penstock.domain.message.step import TIMED_OUT, RecordedStep, Signal, Wait
from penstock.domain.queue.queue import Queue
from penstock.ports.store import Acted
from tests.store.driver import StoreDriver

NAME = "approved:17"


@pytest.fixture
def mail(driver: StoreDriver) -> Queue:
    return driver.queue("mail", lease_ms=MINUTE)


@pytest.fixture
def held(driver: StoreDriver, mail: Queue) -> Message:
    driver.send(mail)
    [held] = driver.claim(mail)
    return held


def wait(
    driver: StoreDriver, held: Message, *, step: str = "wait", timeout_ms: int | None = None
) -> RecordedStep | Wait:
    lease, now = Lease.of(held), driver.now
    until_at = None if timeout_ms is None else now + timeout_ms
    return driver.write(lambda s: s.signals.wait(lease, NAME, step, until_at=until_at, now=now))


def send(
    driver: StoreDriver, body: str = '"yes"', *, kept_ms: int = DAY
) -> tuple[Signal, bool, int]:
    signal = Signal(NAME, body, driver.now, driver.now + kept_ms)
    return driver.write(lambda s: s.signals.send(signal))


def snooze(driver: StoreDriver, held: Message, delay_ms: int = DAY) -> Acted:
    answer = driver.act(Verb.SNOOZE, held, delay_ms=delay_ms, signal=NAME)
    assert isinstance(answer, Acted), answer
    return answer


def suspend(driver: StoreDriver, held: Message, *, timeout_ms: int | None = None) -> None:
    """Register a wait and give the lease back, as a handler does."""
    assert isinstance(wait(driver, held, timeout_ms=timeout_ms), Wait)
    assert snooze(driver, held, timeout_ms or DAY).state is State.WAITING


def outcome(driver: StoreDriver, held: Message, step: str = "wait") -> str | None:
    found, _ = driver.read(
        lambda s: s.steps.page(held.message_no, after_no=0, limit=10, max_bytes=MINUTE)
    )
    return {one.name: one.outcome for one in found}.get(step)


def test_a_signal_makes_the_waiting_message_due_and_records_its_step(
    driver: StoreDriver, mail: Queue, held: Message
) -> None:
    suspend(driver, held)

    sent, is_new, ended = send(driver)

    assert (sent.body, is_new, ended) == ('"yes"', True, 1)
    [again] = driver.claim(mail)
    assert (again.id, again.attempts) == (held.id, 1)
    assert outcome(driver, held) == '{"body":"yes"}'
    found = wait(driver, again)
    assert isinstance(found, RecordedStep)
    assert found.outcome == '{"body":"yes"}'


def test_a_signal_that_came_before_the_wait_ends_it_at_once(
    driver: StoreDriver, held: Message
) -> None:
    send(driver)

    found = wait(driver, held)

    assert isinstance(found, RecordedStep)
    assert found.outcome == '{"body":"yes"}'
    assert driver.read(lambda s: s.signals.waits_of(held.message_no)) == []


def test_a_signal_between_the_wait_and_the_snooze_is_not_missed(
    driver: StoreDriver, mail: Queue, held: Message
) -> None:
    wait(driver, held)
    send(driver, kept_ms=0)

    assert snooze(driver, held).state is State.READY
    assert [m.id for m in driver.claim(mail)] == [held.id]
    assert outcome(driver, held) == '{"body":"yes"}'


def test_the_first_signal_of_a_name_counts_while_it_is_kept(
    driver: StoreDriver, held: Message
) -> None:
    first, _, _ = send(driver, "1", kept_ms=HOUR)
    assert send(driver, "2") == (first, False, 0)
    driver.clock.advance(hours=1)
    second, is_new, _ = send(driver, "3")

    assert (second.body, is_new) == ("3", True)
    assert driver.read(lambda s: s.signals.find(NAME, now=driver.now)) == second


def test_a_signal_that_is_not_kept_ends_only_the_waits_of_now(
    driver: StoreDriver, mail: Queue, held: Message
) -> None:
    suspend(driver, held)

    assert send(driver, kept_ms=0)[2] == 1

    driver.send(mail)
    [first, second] = driver.claim(mail, 2)
    assert isinstance(wait(driver, first), RecordedStep)
    assert isinstance(wait(driver, second), Wait)


def test_a_wait_times_out_when_nothing_arrives(
    driver: StoreDriver, mail: Queue, held: Message
) -> None:
    suspend(driver, held, timeout_ms=HOUR)
    driver.clock.advance(hours=1)
    [again] = driver.claim(mail)

    found = wait(driver, again, timeout_ms=HOUR)

    assert isinstance(found, RecordedStep)
    assert found.outcome == TIMED_OUT
    assert send(driver)[2] == 0  # too late, and the step keeps its outcome
    assert outcome(driver, held) == TIMED_OUT


def test_a_wait_that_is_interrupted_keeps_its_timeout(
    driver: StoreDriver, mail: Queue, held: Message
) -> None:
    first = wait(driver, held, timeout_ms=HOUR)
    driver.clock.advance(minutes=30)
    driver.act(Verb.CRASH, held)
    [again] = driver.claim(mail)

    second = wait(driver, again, timeout_ms=HOUR)

    assert isinstance(first, Wait)
    assert isinstance(second, Wait)
    assert first.until_at == second.until_at


def test_a_signal_leaves_the_back_off_of_a_failed_attempt_alone(
    driver: StoreDriver, mail: Queue, held: Message
) -> None:
    """Only a message that is snoozed for the signal is made due."""
    suspend(driver, held)
    driver.alter(held.id, lambda m, _: lifecycle.reschedule(m, due_at=driver.now, now=driver.now))
    [again] = driver.claim(mail)
    driver.act(Verb.FAIL, again, delay_ms=HOUR)

    assert send(driver)[2] == 1

    found = driver.get(held.id)
    assert (found.state, found.due_at) == (State.WAITING, driver.now + HOUR)
    assert outcome(driver, held) == '{"body":"yes"}'


def test_a_signal_ends_the_waits_of_many_messages_in_several_queues(
    driver: StoreDriver, mail: Queue
) -> None:
    ordered = driver.queue("ordered", ordering="group")
    limited = driver.queue("limited", max_leased=1, max_leased_per_group=1)
    for queue in (mail, ordered, limited):
        driver.send(queue, group="g")
        [held] = driver.claim(queue)
        suspend(driver, held)

    assert send(driver)[2] == 3

    for queue in (mail, ordered, limited):
        assert len(driver.claim(queue, 10)) == 1


def test_a_message_that_was_cancelled_meanwhile_is_left_out(
    driver: StoreDriver, mail: Queue, held: Message
) -> None:
    suspend(driver, held)
    driver.write(lambda s: s.messages.purge(mail.queue_no, limit=10, now=driver.now))

    assert send(driver)[2] == 0

    assert driver.read(lambda s: s.signals.waits_of(held.message_no)) == []


def test_a_lost_lease_can_neither_wait_nor_arm_a_wait(
    driver: StoreDriver, mail: Queue, held: Message
) -> None:
    wait(driver, held)
    driver.act(Verb.RELEASE, held)
    [again] = driver.claim(mail)

    with pytest.raises(LeaseLost):
        wait(driver, held, step="other")
    answer = driver.act(Verb.SNOOZE, held, delay_ms=HOUR, signal=NAME)

    assert isinstance(answer, LeaseLost)
    [found] = driver.read(lambda s: s.signals.waits_of(held.message_no))
    assert (found.step, found.lease_no) == ("wait", None)
    assert driver.get(held.id) == again


def test_signals_are_forgotten_when_they_are_over_and_waits_with_their_message(
    driver: StoreDriver, mail: Queue, held: Message
) -> None:
    driver.keeps_history = False
    wait(driver, held)
    driver.complete(held)
    day = driver.now // DAY
    driver.clock.advance(days=2)

    driver.write(lambda s: s.maintenance.drop_day(day, now=driver.now))
    assert driver.read(lambda s: s.signals.waits_of(held.message_no)) == []
    send(driver, kept_ms=HOUR)
    assert forget_signals(driver) == 0
    driver.clock.advance(hours=1)
    assert forget_signals(driver) == 1


def forget_signals(driver: StoreDriver) -> int:
    return driver.write(lambda s: s.maintenance.forget_signals(now=driver.now, limit=10))
