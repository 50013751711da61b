"""Waits and their signals at the same moment, on two nodes: neither misses the other."""

from __future__ import annotations

from functools import partial

from penstock.domain.limits import DAY
from penstock.domain.message.lease import Lease, Verb
from penstock.domain.message.lifecycle import Message
from penstock.domain.message.step import RecordedStep, Signal, Wait
from penstock.ports.store import Acted
from tests.store.counter_checks import check_counters
from tests.store.postgres.conftest import PostgresDriver
from tests.store.postgres.helpers import at_once

COUNT = 40


def name_of(held: Message) -> str:
    return f"signal {held.message_no}"


def wait(driver: PostgresDriver, held: Message) -> RecordedStep | Wait:
    name, lease = name_of(held), Lease.of(held)
    return driver.write(
        lambda s: s.signals.wait(lease, name, "wait", until_at=None, now=driver.now)
    )


def send_one(driver: PostgresDriver, held: Message) -> int:
    """Returns how many waited; the signal is kept for no wait that follows."""
    signal = Signal(name_of(held), "1", driver.now, driver.now)
    return driver.write(lambda s: s.signals.send(signal))[2]


def suspend(driver: PostgresDriver, messages: list[Message]) -> None:
    for held in messages:
        assert isinstance(wait(driver, held), Wait)
        answer = driver.act(Verb.SNOOZE, held, delay_ms=DAY, signal=name_of(held))
        assert isinstance(answer, Acted)


def send(driver: PostgresDriver, messages: list[Message]) -> None:
    for held in messages:
        while send_one(driver, held) == 0:
            pass


def test_no_signal_is_missed_by_a_message_that_is_being_snoozed(
    drivers: list[PostgresDriver], backed_off: list[int]
) -> None:
    waiting, sending = drivers
    ordered = waiting.queue("ordered", ordering="group", lease_ms=DAY)
    for number in range(COUNT):
        waiting.send(ordered, group=f"group {number % 8}")
    done = 0
    while done < COUNT:
        held = waiting.claim(ordered, COUNT)
        at_once(partial(suspend, waiting, held), partial(send, sending, held))
        again = waiting.claim(ordered, COUNT)
        assert {m.id for m in again} == {m.id for m in held}
        for message in again:
            waiting.complete(message)
        done += len(again)

    assert backed_off == []
    check_counters(waiting)
