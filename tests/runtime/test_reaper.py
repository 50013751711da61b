"""The reaper brings back what fell due, and says when it wants to be asked again."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from penstock.domain.limits import MINUTE
from penstock.domain.message.lifecycle import State
from penstock.domain.queue.queue import Queue
from penstock.runtime import duties
from penstock.runtime.duties import Reaper
from tests.store.desk import Desk

EVERY_MS = 2_000


@pytest.fixture
def mail(desk: Desk) -> Queue:
    return desk.queue("mail", lease_ms=MINUTE, max_attempts=2)


@pytest.fixture
def reaper(desk: Desk) -> Reaper:
    return Reaper(desk.store, every_ms=EVERY_MS)


def test_delayed_messages_join_the_line_when_they_fall_due(
    desk: Desk, mail: Queue, reaper: Reaper
) -> None:
    due, later = desk.send(mail, delay_ms=MINUTE), desk.send(mail, delay_ms=MINUTE + 1)
    desk.clock.advance(minutes=1)

    next_due = reaper.tick(desk.now)

    assert (desk.get(due).state, desk.get(later).state) == (State.READY, State.WAITING)
    assert next_due == desk.now + EVERY_MS


def test_leases_that_ran_out_are_taken_back_in_every_queue(desk: Desk, reaper: Reaper) -> None:
    queues = [desk.queue(name, lease_ms=MINUTE) for name in ("a", "b", "c")]
    ids = [desk.send(queue) for queue in queues]
    for queue in queues:
        desk.claim(queue)
    desk.clock.advance(minutes=1)

    reaper.tick(desk.now)

    assert {desk.get(message_id).state for message_id in ids} == {State.READY}
    assert [desk.counts(queue).expired_total for queue in queues] == [1, 1, 1]


def test_a_lease_that_ran_out_for_the_last_time_is_the_end(
    desk: Desk, mail: Queue, reaper: Reaper
) -> None:
    message_id = desk.send(mail)
    for _ in range(2):
        desk.claim(mail)
        desk.clock.advance(minutes=1)
        reaper.tick(desk.now)

    assert desk.get(message_id).state is State.DEAD


def test_those_who_wait_hear_of_what_came_back(desk: Desk, mail: Queue, reaper: Reaper) -> None:
    desk.send(mail, delay_ms=MINUTE)
    desk.clock.advance(minutes=1)
    heard: list[Mapping[int, int]] = []
    desk.store.listen(heard.append)  # type: ignore[attr-defined]

    reaper.tick(desk.now)

    assert [woken.get(mail.queue_no) for woken in heard] == [1]


def test_where_nothing_fell_due_nothing_is_written(desk: Desk, mail: Queue, reaper: Reaper) -> None:
    desk.send(mail)
    desk.send(mail, delay_ms=MINUTE)
    heard: list[Mapping[int, int]] = []
    desk.store.listen(heard.append)  # type: ignore[attr-defined]

    assert reaper.tick(desk.now) == desk.now + EVERY_MS
    assert heard == []


def test_a_paused_queue_is_tidied_too(desk: Desk, mail: Queue, reaper: Reaper) -> None:
    message_id = desk.send(mail, delay_ms=MINUTE)
    desk.pause(mail)
    desk.clock.advance(minutes=1)

    reaper.tick(desk.now)

    assert desk.get(message_id).state is State.READY


def test_a_great_many_are_brought_back_bit_by_bit(
    desk: Desk, mail: Queue, reaper: Reaper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duties, "_CHUNK", 2)
    monkeypatch.setattr(duties, "_CHUNKS_PER_TICK", 3)
    desk.send_many(mail, 13, delay_ms=MINUTE)
    desk.clock.advance(minutes=1)

    counts, asks_again_in = [], []
    for _ in range(3):
        asks_again_in.append(reaper.tick(desk.now) - desk.now)
        counts.append(desk.counts(mail).ready)

    assert counts == [6, 12, 13]
    assert asks_again_in == [1, 1, EVERY_MS], "the rest follows at once, after others had a turn"
