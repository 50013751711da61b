"""The expirer cancels expired messages."""

from __future__ import annotations

import pytest

from penstock.domain.limits import MINUTE
from penstock.domain.message.lifecycle import State
from penstock.domain.queue.queue import Queue
from penstock.runtime import duties
from penstock.runtime.duties import Expirer
from tests.store.driver import StoreDriver

EVERY_MS = 2_000


@pytest.fixture
def mail(driver: StoreDriver) -> Queue:
    return driver.queue("mail")


@pytest.fixture
def expirer(driver: StoreDriver) -> Expirer:
    return Expirer(driver.store, every_ms=EVERY_MS)


def test_waiting_messages_expire_at_their_instant(
    driver: StoreDriver, mail: Queue, expirer: Expirer
) -> None:
    old = driver.send(mail, expires_in_ms=MINUTE)
    waiting = driver.send(mail, expires_in_ms=MINUTE, delay_ms=2 * MINUTE)
    young = driver.send(mail, expires_in_ms=MINUTE + 1)
    driver.clock.advance(minutes=1)

    next_due = expirer.tick(driver.now)

    assert next_due == driver.now + EVERY_MS
    assert driver.get(young).state is State.READY
    assert {(e.id, e.outcome, e.reason) for e in driver.endings()} == {
        (old, State.CANCELLED, "expired"),
        (waiting, State.CANCELLED, "expired"),
    }
    assert driver.counts(mail).is_balanced


def test_a_leased_message_does_not_expire(
    driver: StoreDriver, mail: Queue, expirer: Expirer
) -> None:
    message_id = driver.send(mail, expires_in_ms=MINUTE)
    driver.claim(mail, lease_ms=10 * MINUTE)
    driver.clock.advance(minutes=1)

    expirer.tick(driver.now)

    assert driver.get(message_id).state is State.LEASED


def test_many_messages_expire_in_chunks(
    driver: StoreDriver, mail: Queue, expirer: Expirer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duties, "_CHUNK", 2)
    monkeypatch.setattr(duties, "_CHUNKS_PER_TICK", 2)
    driver.send_many(mail, 5, expires_in_ms=MINUTE)
    driver.clock.advance(minutes=1)

    asks_again_in = [expirer.tick(driver.now) - driver.now for _ in range(2)]

    assert asks_again_in == [1, EVERY_MS]
    assert driver.counts(mail).cancelled_total == 5
