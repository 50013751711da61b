"""The pruner forgets by age: days of history, and dedup keys whose window is over."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.domain.fact import FactFilter
from penstock.domain.lake import layout as lake
from penstock.domain.limits import DAY, MINUTE
from penstock.domain.message.claim_key import KEPT_MS
from penstock.domain.message.lifecycle import State
from penstock.domain.queue.queue import Queue
from penstock.runtime.archiver.archiver import sample
from penstock.runtime.duties import Pruner
from tests.runtime.archiver.rig import Rig
from tests.store.desk import Desk

RETENTION_DAYS = 7


@pytest.fixture
def mail(desk: Desk) -> Queue:
    return desk.queue("mail", dedup_window_ms=MINUTE)


@pytest.fixture
def pruner(desk: Desk) -> Pruner:
    desk.keeps_history = False
    return Pruner(desk.store, retention_days=RETENTION_DAYS)


def days(desk: Desk) -> list[int]:
    return desk.read(lambda s: s.tidying.old_days(before_day=2**31))


def finish_one(desk: Desk, queue: Queue) -> str:
    message_id = desk.send(queue)
    desk.complete(*desk.claim(queue))
    return message_id


def test_today_and_tomorrow_are_there_before_they_are_needed(desk: Desk, pruner: Pruner) -> None:
    next_due = pruner.tick(desk.now)

    today = desk.now // DAY
    assert {today, today + 1} <= set(days(desk))
    assert next_due == desk.now + MINUTE


def test_claims_that_nobody_repeats_any_more_are_forgotten(
    desk: Desk, mail: Queue, pruner: Pruner
) -> None:
    desk.send(mail)
    desk.claim(mail, claim_key="k")
    desk.clock.advance(ms=KEPT_MS)

    pruner.tick(desk.now)

    assert desk.write(lambda s: s.tidying.forget_claims(now=desk.now, limit=10)) == 0


def test_a_clock_that_jumps_ahead_prunes_nothing_for_a_day(
    desk: Desk, mail: Queue, pruner: Pruner, caplog: pytest.LogCaptureFixture
) -> None:
    first = finish_one(desk, mail)
    pruner.tick(desk.now)

    desk.clock.advance(days=RETENTION_DAYS + 1)
    pruner.tick(desk.now)
    assert [ending.id for ending in desk.endings()] == [first]
    assert "nothing is pruned before 2030-03-23T12:00:00.000Z" in caplog.text

    desk.clock.advance(days=1)
    pruner.tick(desk.now)
    assert desk.endings() == []


def test_a_clock_that_is_corrected_prunes_nothing_that_is_not_old(
    desk: Desk, mail: Queue, pruner: Pruner
) -> None:
    first = finish_one(desk, mail)
    pruner.tick(desk.now)

    pruner.tick(desk.now + 2 * RETENTION_DAYS * DAY)
    for _ in range(2):
        desk.clock.advance(days=1)
        pruner.tick(desk.now)

    assert [ending.id for ending in desk.endings()] == [first]


def test_endings_are_remembered_for_as_many_days_as_was_set(
    desk: Desk, mail: Queue, pruner: Pruner
) -> None:
    first = finish_one(desk, mail)
    desk.clock.advance(days=1)
    second = finish_one(desk, mail)

    desk.clock.advance(days=RETENTION_DAYS - 1)
    pruner.tick(desk.now)
    assert {ending.id for ending in desk.endings()} == {first, second}

    desk.clock.advance(days=1)
    pruner.tick(desk.now)
    assert {ending.id for ending in desk.endings()} == {second}
    assert desk.counts(mail).done_total == 2, "totals are not forgotten"


def test_what_still_lives_outlives_its_day(desk: Desk, mail: Queue, pruner: Pruner) -> None:
    message_id = desk.send(mail, body='"kept"')
    born = desk.now // DAY
    desk.clock.advance(days=RETENTION_DAYS + 2)

    pruner.tick(desk.now)

    assert born not in days(desk)
    assert desk.get(message_id).state is State.READY
    [(_, content)] = desk.submit_claim(mail).result().messages
    assert content.body == '"kept"'


def test_a_key_can_be_used_again_after_its_window(desk: Desk, mail: Queue, pruner: Pruner) -> None:
    desk.send(mail, dedup_key="k")
    desk.clock.advance(minutes=1)

    pruner.tick(desk.now)

    assert desk.send(mail, dedup_key="k")


def test_days_that_were_missed_are_all_forgotten_at_once(
    desk: Desk, mail: Queue, pruner: Pruner
) -> None:
    for _ in range(3):
        finish_one(desk, mail)
        desk.clock.advance(days=1)
    desk.clock.advance(days=30)

    pruner.tick(desk.now)

    assert desk.endings() == []
    assert days(desk) == [desk.now // DAY, desk.now // DAY + 1]


def test_with_an_archive_nothing_is_forgotten_before_it_is_in_the_lake(
    desk: Desk, mail: Queue, tmp_path: Path
) -> None:
    desk.keeps_history = False
    pruner = Pruner(desk.store, retention_days=RETENTION_DAYS, is_archived=True)
    rig = Rig(desk, tmp_path / "lake")
    first = finish_one(desk, mail)
    desk.write(lambda s: s.facts.add("a", "x", at=desk.now, data={}))
    sample(desk.store, now=desk.now)
    born = desk.now // DAY
    desk.clock.advance(days=RETENTION_DAYS + 2)

    pruner.tick(desk.now)
    assert [ending.id for ending in desk.endings()] == [first]
    assert len(desk.read(lambda s: s.facts.search(FactFilter()))) == 1

    rig.run()
    pruner.tick(desk.now)
    assert desk.endings() == []
    assert born not in days(desk)
    assert desk.read(lambda s: s.facts.search(FactFilter())) == []
    assert rig.ids(lake.HISTORY) == [first]
    rig.run()
    assert rig.ids(lake.HISTORY) == [first]


def test_without_one_samples_are_forgotten_like_everything_else(
    desk: Desk, mail: Queue, pruner: Pruner, tmp_path: Path
) -> None:
    desk.send(mail)
    sample(desk.store, now=desk.now)
    desk.clock.advance(days=RETENTION_DAYS + 2)

    pruner.tick(desk.now)

    assert (
        desk.write(lambda s: s.archive.forget_samples(before_at=desk.now, upto_no=2**62, limit=9))
        == 0
    )
