"""The reaper makes due messages available, and returns when it is due again."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from penstock.domain.limits import MINUTE
from penstock.domain.message.lifecycle import State
from penstock.domain.queue.queue import Queue
from penstock.runtime import duties
from penstock.runtime.duties import Reaper
from tests.store.driver import StoreDriver

EVERY_MS = 2_000


@pytest.fixture
def mail(driver: StoreDriver) -> Queue:
    return driver.queue("mail", lease_ms=MINUTE, max_attempts=2)


@pytest.fixture
def reaper(driver: StoreDriver) -> Reaper:
    return Reaper(driver.store, every_ms=EVERY_MS)


def test_delayed_messages_become_ready_when_they_fall_due(
    driver: StoreDriver, mail: Queue, reaper: Reaper
) -> None:
    due, later = driver.send(mail, delay_ms=MINUTE), driver.send(mail, delay_ms=MINUTE + 1)
    driver.clock.advance(minutes=1)

    next_due = reaper.tick(driver.now)

    assert (driver.get(due).state, driver.get(later).state) == (State.READY, State.WAITING)
    assert next_due == driver.now + EVERY_MS


def test_expired_leases_are_taken_back_in_every_queue(driver: StoreDriver, reaper: Reaper) -> None:
    queues = [driver.queue(name, lease_ms=MINUTE) for name in ("a", "b", "c")]
    ids = [driver.send(queue) for queue in queues]
    for queue in queues:
        driver.claim(queue)
    driver.clock.advance(minutes=1)

    reaper.tick(driver.now)

    assert {driver.get(message_id).state for message_id in ids} == {State.READY}
    assert [driver.counts(queue).expired_total for queue in queues] == [1, 1, 1]


def test_a_lease_that_expired_on_the_last_attempt_ends_the_message(
    driver: StoreDriver, mail: Queue, reaper: Reaper
) -> None:
    message_id = driver.send(mail)
    for _ in range(2):
        driver.claim(mail)
        driver.clock.advance(minutes=1)
        reaper.tick(driver.now)

    assert driver.get(message_id).state is State.DEAD


def test_waiting_claims_are_woken_by_messages_that_came_back(
    driver: StoreDriver, mail: Queue, reaper: Reaper
) -> None:
    driver.send(mail, delay_ms=MINUTE)
    driver.clock.advance(minutes=1)
    wakeups: list[Mapping[int, int]] = []
    driver.store.listen(wakeups.append)  # type: ignore[attr-defined]

    reaper.tick(driver.now)

    assert [woken.get(mail.queue_no) for woken in wakeups] == [1]


def test_nothing_is_written_if_nothing_fell_due(
    driver: StoreDriver, mail: Queue, reaper: Reaper
) -> None:
    driver.send(mail)
    driver.send(mail, delay_ms=MINUTE)
    wakeups: list[Mapping[int, int]] = []
    driver.store.listen(wakeups.append)  # type: ignore[attr-defined]

    assert reaper.tick(driver.now) == driver.now + EVERY_MS
    assert wakeups == []


def test_a_paused_queue_is_tidied_too(driver: StoreDriver, mail: Queue, reaper: Reaper) -> None:
    message_id = driver.send(mail, delay_ms=MINUTE)
    driver.pause(mail)
    driver.clock.advance(minutes=1)

    reaper.tick(driver.now)

    assert driver.get(message_id).state is State.READY


def test_many_messages_are_brought_back_in_chunks(
    driver: StoreDriver, mail: Queue, reaper: Reaper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duties, "_CHUNK", 2)
    monkeypatch.setattr(duties, "_CHUNKS_PER_TICK", 3)
    driver.send_many(mail, 13, delay_ms=MINUTE)
    driver.clock.advance(minutes=1)

    counts, asks_again_in = [], []
    for _ in range(3):
        asks_again_in.append(reaper.tick(driver.now) - driver.now)
        counts.append(driver.counts(mail).ready)

    assert counts == [6, 12, 13]
    assert asks_again_in == [1, 1, EVERY_MS], "the rest follows at once, after others had a turn"
