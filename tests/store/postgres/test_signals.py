"""Waits and their signals at the same moment, on two nodes: neither misses the other."""

from __future__ import annotations

from penstock.domain.limits import DAY
from penstock.domain.message.lease import Lease, Verb
from penstock.domain.message.lifecycle import Message
from penstock.domain.message.step import Signal, Wait
from penstock.ports.store import Acted
from tests.store.counter_checks import check_counters
from tests.store.postgres.conftest import PostgresDriver
from tests.store.postgres.helpers import at_once

COUNT = 40


def name_of(held: Message) -> str:
    return f"signal {held.message_no}"


def suspend(driver: PostgresDriver, messages: list[Message]) -> None:
    for held in messages:
        lease, name = Lease.of(held), name_of(held)
        found = driver.write(
            lambda s, lease=lease, name=name: s.signals.wait(
                lease, name, "wait", until_at=None, now=driver.now
            )
        )
        assert isinstance(found, Wait)
        assert isinstance(driver.act(Verb.SNOOZE, held, delay_ms=DAY, signal=name), Acted)


def send(driver: PostgresDriver, messages: list[Message]) -> None:
    for held in messages:
        signal = Signal(name_of(held), "1", driver.now, driver.now)  # kept for no wait that follows
        while driver.write(lambda s, signal=signal: s.signals.send(signal))[2] == 0:
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
        at_once(lambda held=held: suspend(waiting, held), lambda held=held: send(sending, held))
        again = waiting.claim(ordered, COUNT)
        assert {m.id for m in again} == {m.id for m in held}
        for message in again:
            waiting.complete(message)
        done += len(again)

    assert backed_off == []
    check_counters(waiting)
