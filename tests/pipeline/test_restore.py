"""What was there at an instant, told from the lake, is what was there."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

from penstock.domain.lake import layout as lake
from penstock.domain.message.lease import Verb
from penstock.domain.message.lifecycle import State
from penstock.pipeline import restore
from penstock.pipeline.lake import SparkLake
from penstock.pipeline.restore import Bounds, RestoreFilter
from penstock.ports.store import Store
from penstock.store.store import open_sqlite
from tests.clocks import ManualClock
from tests.pipeline.rows import frame
from tests.runtime.archiver.driver import ArchiverDriver
from tests.store.driver import StoreDriver

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = open_sqlite(tmp_path / "penstock.db")
    yield store
    store.close()


@pytest.fixture
def driver(store: Store, tmp_path: Path) -> ArchiverDriver:
    return ArchiverDriver(StoreDriver(store, ManualClock()), tmp_path / "lake")


def live(store_driver: StoreDriver) -> dict[str, tuple[Any, ...]]:
    """What a restore brings back of each message: whoever was leased is ready."""
    found = {}
    for queue in store_driver.queues:
        for state in (State.WAITING, State.READY, State.LEASED, State.DEAD):
            for m in store_driver.browse(queue, state):
                held = 1 if state is State.LEASED else 0
                shown = State.READY if state is State.LEASED else state
                found[m.id] = (queue.name, shown.value, m.attempts - held, m.failures)
    return found


def told(rows: Any) -> dict[str, tuple[Any, ...]]:
    listed = [(r.id, (r.queue, r.state, r.attempts, r.failures)) for r in rows.collect()]
    assert len(dict(listed)) == len(listed), "each of them once"
    return dict(listed)


def _without_dates(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return (row[0], "ready" if row[1] == "waiting" else row[1], *row[2:])


def at(spark: SparkSession, driver: ArchiverDriver, instant: int) -> Any:
    lake_ = SparkLake(spark, str(driver.folder))
    tables = restore.tables_of(lake_)
    bounds = restore.bounds_of(tables["snapshots"], at=instant)
    return restore.state_at(tables, at=instant, bounds=bounds)


class Traffic:
    """Random, but nothing is dead for long: what is dead at rest is in the next snapshot."""

    def __init__(self, driver: ArchiverDriver) -> None:
        self._store_driver = store_driver = driver.store_driver
        self._chance = random.Random(11)
        self.mail = store_driver.queue("mail", max_attempts=2)
        self.post = store_driver.queue("post", max_attempts=2, dead_letter_queue="letters")
        self.letters = store_driver.queue("letters")

    def step(self) -> None:
        store_driver, chance = self._store_driver, self._chance
        store_driver.clock.advance(ms=chance.randint(1, 500))
        for queue in (self.mail, self.post):
            store_driver.send_many(queue, chance.randint(0, 3), body='"b"')
            if chance.random() < 0.3:
                store_driver.send(queue, delay_ms=chance.randint(100, 20_000), body='"later"')
        for queue in (self.mail, self.post, self.letters):
            for held in store_driver.claim(queue, chance.randint(0, 3)):
                verb = chance.choice(
                    [Verb.COMPLETE, Verb.COMPLETE, Verb.FAIL, Verb.RELEASE, Verb.EXTEND]
                )
                store_driver.clock.advance(ms=1)
                store_driver.act(verb, held, delay_ms=chance.randint(1, 900))


def test_what_is_told_of_any_instant_is_what_was_there(spark, driver):
    traffic = Traffic(driver)
    truth: dict[int, dict[str, tuple[Any, ...]]] = {}
    for step in range(60):
        traffic.step()
        if step in (4, 30, 59):
            driver.snapshots.take()
        if step in (2, 29, 45):
            driver.store_driver.clock.advance(ms=1)
            truth[driver.store_driver.now] = live(driver.store_driver)
            driver.store_driver.clock.advance(ms=1)
    driver.run()

    for instant, was in truth.items():
        rows = at(spark, driver, instant).cache()
        found = told(rows)
        # A due date is not known any more of whoever is known only by its end: then it is ready.
        assert {i: _without_dates(row) for i, row in found.items()} == {
            i: _without_dates(row) for i, row in was.items()
        }
        assert {i for i, row in found.items() if row[1] == "waiting"} <= {
            i for i, row in was.items() if row[1] == "waiting"
        }
        assert rows.where("body IS NULL").count() == 0


def test_without_a_later_snapshot_what_is_known_of_is_told(spark, driver):
    """The store is lost, and with it what was sent after the last snapshot and had not ended."""
    store_driver = driver.store_driver
    mail = store_driver.queue("mail")
    before = store_driver.send_many(mail, 3)
    store_driver.clock.advance(ms=10)
    driver.snapshots.take()
    store_driver.clock.advance(ms=10)
    lost = store_driver.send(mail)
    store_driver.complete(store_driver.claim(mail)[0])
    store_driver.clock.advance(ms=10)
    driver.run()

    found = told(at(spark, driver, store_driver.now))

    assert set(found) == set(before[1:])
    assert lost not in found


def test_waiting_messages_keep_their_dates_and_keys(spark, driver):
    store_driver = driver.store_driver
    mail = store_driver.queue("mail")
    later = store_driver.send(
        mail, delay_ms=60_000, kind="letter", tags=("a",), dedup_key="k", attributes={"x": "y"},
        max_attempts=9, priority=4, expires_in_ms=90_000,
    )  # fmt: skip
    driver.snapshots.take()
    driver.run()

    [row] = at(spark, driver, store_driver.now).collect()

    message = store_driver.get(later)
    assert (row.id, row.state, row.due_at) == (later, "waiting", message.due_at)
    assert (row.kind, row.tag1, row.priority, row.max_attempts) == ("letter", "a", 4, 9)
    assert (row.dedup_key, row.expires_at) == ("k", message.expires_at)
    assert (row.attributes, row.sent_at) == ('{"x":"y"}', message.sent_at)


def test_some_of_them_can_be_picked_and_counted(spark):
    schema = lake.SNAPSHOTS
    rows = frame(
        spark,
        schema,
        {"queue": "a", "state": "ready", "kind": "k", "tag2": "t", "body": "1"},
        {"queue": "a", "state": "dead", "kind": "k", "body": None},
        {"queue": "b", "state": "ready", "kind": None, "tag1": "t", "body": "1"},
    )

    def numbers(**wanted: Any) -> list[int]:
        return sorted(r.message_no for r in restore.pick(rows, RestoreFilter(**wanted)).collect())

    assert numbers() == [1, 2, 3]
    assert numbers(queues=("a",)) == [1, 2]
    assert numbers(kinds=("k",), states=("ready",)) == [1]
    assert numbers(tags=("t",)) == [1, 3]
    assert [tuple(row) for row in restore.counts(rows).collect()] == [
        ("a", "dead", 1, 1), ("a", "ready", 1, 0), ("b", "ready", 1, 0),
    ]  # fmt: skip


def test_the_snapshots_on_both_sides_are_found(spark):
    taken = [{"taken_at": 10}, {"taken_at": 20}, {"taken_at": 30}]
    rows = frame(spark, lake.SNAPSHOTS, *taken)
    rows = rows.withColumn("snapshot_no", F.col("taken_at") / 10)
    found = [restore.bounds_of(rows, at=instant) for instant in (5, 20, 25, 99)]
    assert found == [
        Bounds(None, None, 1), Bounds(2, 20, 2), Bounds(2, 20, 3), Bounds(3, 30, None),
    ]  # fmt: skip
