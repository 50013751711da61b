"""The expirer cancels what is too old to be of use."""

from __future__ import annotations

import pytest

from penstock.domain.limits import MINUTE
from penstock.domain.message.lifecycle import State
from penstock.domain.queue.queue import Queue
from penstock.runtime import duties
from penstock.runtime.duties import Expirer
from tests.store.desk import Desk

EVERY_MS = 2_000


@pytest.fixture
def mail(desk: Desk) -> Queue:
    return desk.queue("mail")


@pytest.fixture
def expirer(desk: Desk) -> Expirer:
    return Expirer(desk.store, every_ms=EVERY_MS)


def test_messages_in_line_end_at_their_instant(desk: Desk, mail: Queue, expirer: Expirer) -> None:
    old = desk.send(mail, expires_in_ms=MINUTE)
    waiting = desk.send(mail, expires_in_ms=MINUTE, delay_ms=2 * MINUTE)
    young = desk.send(mail, expires_in_ms=MINUTE + 1)
    desk.clock.advance(minutes=1)

    next_due = expirer.tick(desk.now)

    assert next_due == desk.now + EVERY_MS
    assert desk.get(young).state is State.READY
    assert {(e.id, e.outcome, e.reason) for e in desk.endings()} == {
        (old, State.CANCELLED, "expired"),
        (waiting, State.CANCELLED, "expired"),
    }
    assert desk.counts(mail).is_balanced


def test_what_somebody_holds_does_not_expire(desk: Desk, mail: Queue, expirer: Expirer) -> None:
    message_id = desk.send(mail, expires_in_ms=MINUTE)
    desk.claim(mail, lease_ms=10 * MINUTE)
    desk.clock.advance(minutes=1)

    expirer.tick(desk.now)

    assert desk.get(message_id).state is State.LEASED


def test_a_great_many_expire_bit_by_bit(
    desk: Desk, mail: Queue, expirer: Expirer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duties, "_CHUNK", 2)
    monkeypatch.setattr(duties, "_CHUNKS_PER_TICK", 2)
    desk.send_many(mail, 5, expires_in_ms=MINUTE)
    desk.clock.advance(minutes=1)

    asks_again_in = [expirer.tick(desk.now) - desk.now for _ in range(2)]

    assert asks_again_in == [1, EVERY_MS]
    assert desk.counts(mail).cancelled_total == 5
