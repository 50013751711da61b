"""The pruner deletes by age: days of history, and dedup keys whose window is over."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.domain.fact import FactFilter
from penstock.domain.lake import layout as lake
from penstock.domain.limits import DAY, MINUTE
from penstock.domain.message.claim_key import KEPT_MS
from penstock.domain.message.lifecycle import State
from penstock.domain.message.step import Signal
from penstock.domain.queue.queue import Queue
from penstock.runtime.duties import Pruner
from tests.runtime.archiver.driver import ArchiverDriver
from tests.store.driver import StoreDriver

RETENTION_DAYS = 7


@pytest.fixture
def mail(store_driver: StoreDriver) -> Queue:
    return store_driver.queue("mail", dedup_window_ms=MINUTE)


@pytest.fixture
def pruner(store_driver: StoreDriver) -> Pruner:
    store_driver.keeps_history = False
    return Pruner(store_driver.store, retention_days=RETENTION_DAYS)


def days(store_driver: StoreDriver) -> list[int]:
    return store_driver.read(lambda s: s.maintenance.old_days(before_day=2**31))


def finish_one(store_driver: StoreDriver, queue: Queue) -> str:
    message_id = store_driver.send(queue)
    store_driver.complete(*store_driver.claim(queue))
    return message_id


def test_tables_of_today_and_tomorrow_exist_before_they_are_needed(
    store_driver: StoreDriver, pruner: Pruner
) -> None:
    next_due = pruner.tick(store_driver.now)

    today = store_driver.now // DAY
    assert {today, today + 1} <= set(days(store_driver))
    assert next_due == store_driver.now + MINUTE


def test_claims_that_can_not_be_repeated_any_more_are_forgotten(
    store_driver: StoreDriver, mail: Queue, pruner: Pruner
) -> None:
    store_driver.send(mail)
    store_driver.claim(mail, claim_key="k")
    store_driver.clock.advance(ms=KEPT_MS)

    pruner.tick(store_driver.now)

    assert (
        store_driver.write(lambda s: s.maintenance.forget_claims(now=store_driver.now, limit=10))
        == 0
    )


def test_signals_that_are_over_are_forgotten(store_driver: StoreDriver, pruner: Pruner) -> None:
    signal = Signal("approved", "1", store_driver.now, store_driver.now + MINUTE)
    store_driver.write(lambda s: s.signals.send(signal))
    store_driver.clock.advance(minutes=1)

    pruner.tick(store_driver.now)

    now = store_driver.now
    assert store_driver.write(lambda s: s.maintenance.forget_signals(now=now, limit=10)) == 0


def test_a_clock_that_jumps_ahead_prunes_nothing_for_a_day(
    store_driver: StoreDriver, mail: Queue, pruner: Pruner, caplog: pytest.LogCaptureFixture
) -> None:
    first = finish_one(store_driver, mail)
    pruner.tick(store_driver.now)

    store_driver.clock.advance(days=RETENTION_DAYS + 1)
    pruner.tick(store_driver.now)
    assert [ending.id for ending in store_driver.endings()] == [first]
    assert "nothing is pruned before 2030-03-23T12:00:00.000Z" in caplog.text

    store_driver.clock.advance(days=1)
    pruner.tick(store_driver.now)
    assert store_driver.endings() == []


def test_a_clock_that_is_corrected_prunes_nothing_that_is_not_old(
    store_driver: StoreDriver, mail: Queue, pruner: Pruner
) -> None:
    first = finish_one(store_driver, mail)
    pruner.tick(store_driver.now)

    pruner.tick(store_driver.now + 2 * RETENTION_DAYS * DAY)
    for _ in range(2):
        store_driver.clock.advance(days=1)
        pruner.tick(store_driver.now)

    assert [ending.id for ending in store_driver.endings()] == [first]


def test_endings_are_remembered_for_as_many_days_as_was_set(
    store_driver: StoreDriver, mail: Queue, pruner: Pruner
) -> None:
    first = finish_one(store_driver, mail)
    store_driver.clock.advance(days=1)
    second = finish_one(store_driver, mail)

    store_driver.clock.advance(days=RETENTION_DAYS - 1)
    pruner.tick(store_driver.now)
    assert {ending.id for ending in store_driver.endings()} == {first, second}

    store_driver.clock.advance(days=1)
    pruner.tick(store_driver.now)
    assert {ending.id for ending in store_driver.endings()} == {second}
    assert store_driver.counts(mail).done_total == 2, "totals are not forgotten"


def test_a_live_message_outlives_its_day(
    store_driver: StoreDriver, mail: Queue, pruner: Pruner
) -> None:
    message_id = store_driver.send(mail, body='"kept"')
    born = store_driver.now // DAY
    store_driver.clock.advance(days=RETENTION_DAYS + 2)

    pruner.tick(store_driver.now)

    assert born not in days(store_driver)
    assert store_driver.get(message_id).state is State.READY
    [(_, content)] = store_driver.submit_claim(mail).result().messages
    assert content.body == '"kept"'


def test_a_key_can_be_used_again_after_its_window(
    store_driver: StoreDriver, mail: Queue, pruner: Pruner
) -> None:
    store_driver.send(mail, dedup_key="k")
    store_driver.clock.advance(minutes=1)

    pruner.tick(store_driver.now)

    assert store_driver.send(mail, dedup_key="k")


def test_days_that_were_missed_are_all_forgotten_at_once(
    store_driver: StoreDriver, mail: Queue, pruner: Pruner
) -> None:
    for _ in range(3):
        finish_one(store_driver, mail)
        store_driver.clock.advance(days=1)
    store_driver.clock.advance(days=30)

    pruner.tick(store_driver.now)

    assert store_driver.endings() == []
    assert days(store_driver) == [store_driver.now // DAY, store_driver.now // DAY + 1]


def test_with_archiving_nothing_is_forgotten_before_it_is_in_the_lake(
    store_driver: StoreDriver, mail: Queue, tmp_path: Path
) -> None:
    store_driver.keeps_history = False
    pruner = Pruner(store_driver.store, retention_days=RETENTION_DAYS, is_archived=True)
    driver = ArchiverDriver(store_driver, tmp_path / "lake")
    first = finish_one(store_driver, mail)
    store_driver.write(lambda s: s.facts.add("a", "x", at=store_driver.now, data={}))
    born = store_driver.now // DAY
    store_driver.clock.advance(days=RETENTION_DAYS + 2)

    pruner.tick(store_driver.now)
    assert [ending.id for ending in store_driver.endings()] == [first]
    assert len(store_driver.read(lambda s: s.facts.search(FactFilter()))) == 1

    driver.run()
    pruner.tick(store_driver.now)
    assert store_driver.endings() == []
    assert born not in days(store_driver)
    assert store_driver.read(lambda s: s.facts.search(FactFilter())) == []
    assert driver.ids(lake.HISTORY) == [first]
    driver.run()
    assert driver.ids(lake.HISTORY) == [first]
