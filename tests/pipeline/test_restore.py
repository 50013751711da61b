"""The state restored from the lake is the real one, at any instant."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.domain.lake import layout as lake
from penstock.domain.message.lease import Verb
from penstock.domain.message.lifecycle import State
from penstock.pipeline.files.local_lake import LocalLake, Memory, NumberSet
from penstock.pipeline.lake import SparkLake
from penstock.pipeline.restore.local import LocalEnded, LocalRestore
from penstock.pipeline.restore.rules import ENDED_AT, Bounds, RestoreFilter, Row, bounds_of
from penstock.pipeline.restore.spark import SparkEnded, SparkRestore
from penstock.pipeline.spark.stopped import PipelineStopped
from penstock.ports.store import Store
from penstock.services.lake import RestoreService
from penstock.store.store import open_sqlite
from tests.clocks import ManualClock
from tests.runtime.archiver.driver import ArchiverDriver
from tests.store.driver import StoreDriver


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = open_sqlite(tmp_path / "penstock.db")
    yield store
    store.close()


@pytest.fixture
def driver(store: Store, tmp_path: Path) -> ArchiverDriver:
    return ArchiverDriver(StoreDriver(store, ManualClock()), tmp_path / "lake")


def live(store_driver: StoreDriver) -> dict[str, tuple[Any, ...]]:
    """What a restore brings back of each message: leased ones are ready."""
    found = {}
    for queue in store_driver.queues:
        for state in (State.WAITING, State.READY, State.LEASED, State.DEAD):
            for m in store_driver.browse(queue, state):
                held = 1 if state is State.LEASED else 0
                shown = State.READY if state is State.LEASED else state
                found[m.id] = (queue.name, shown.value, m.attempts - held, m.failures)
    return found


def summary(rows: Iterable[Row]) -> dict[str, tuple[Any, ...]]:
    listed = [(r["id"], (r["queue"], r["state"], r["attempts"], r["failures"])) for r in rows]
    assert len(dict(listed)) == len(listed), "each of them once"
    return dict(listed)


def _without_dates(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return (row[0], "ready" if row[1] == "waiting" else row[1], *row[2:])


def at(driver: ArchiverDriver, instant: int, **wanted: Any) -> list[Row]:
    source = LocalRestore(LocalLake(str(driver.folder)), at=instant, wanted=RestoreFilter(**wanted))
    return list(source.rows())


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
            kind, group = (("letter", "g"), ("card", None))[store_driver.now % 2]
            labels: dict[str, Any] = {"kind": kind, "tags": ("all", kind)}
            store_driver.send_many(queue, chance.randint(0, 3), body='"b"', **labels)
            if chance.random() < 0.3:
                delay_ms = chance.randint(100, 20_000)
                store_driver.send(queue, delay_ms=delay_ms, body='"later"', group=group, **labels)
        for queue in (self.mail, self.post, self.letters):
            for held in store_driver.claim(queue, chance.randint(0, 3)):
                verb = chance.choice(
                    [Verb.COMPLETE, Verb.COMPLETE, Verb.FAIL, Verb.RELEASE, Verb.EXTEND]
                )
                store_driver.clock.advance(ms=1)
                store_driver.act(verb, held, delay_ms=chance.randint(1, 900))


def busy_days(driver: ArchiverDriver) -> dict[int, dict[str, tuple[Any, ...]]]:
    """Traffic with snapshots between; returns what was live at some instants."""
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
    return truth


def test_the_restored_state_of_any_instant_is_the_real_one(driver):
    for instant, was in busy_days(driver).items():
        rows = at(driver, instant)
        found = summary(rows)
        # The due date of a message that is known only by its end is lost: it is ready.
        assert {i: _without_dates(row) for i, row in found.items()} == {
            i: _without_dates(row) for i, row in was.items()
        }
        assert {i for i, row in found.items() if row[1] == "waiting"} <= {
            i for i, row in was.items() if row[1] == "waiting"
        }
        assert all(row["body"] is not None for row in rows)


@pytest.mark.parametrize(
    "wanted",
    [
        {"queues": ("post",)},
        {"queues": ("letters",)},
        {"queues": ("mail", "letters"), "kinds": ("letter",)},
        {"groups": ("g",), "states": ("ready", "waiting")},
        {"tags": ("all", "card"), "queues": ("post",)},
        {"states": ("dead",)},
    ],
)
def test_a_filter_restores_the_same_rows_as_picking_them_afterwards(driver, wanted):
    """Messages of `post` move to `letters` when they die."""
    for instant in busy_days(driver):
        everything = at(driver, instant)

        assert at(driver, instant, **wanted) == [
            row for row in everything if RestoreFilter(**wanted).matches(row)
        ]
    assert at(driver, instant, **wanted)


def test_both_engines_restore_the_same_rows(spark, driver):
    _, instant, _ = busy_days(driver)

    through_spark = SparkRestore(SparkLake(spark, str(driver.folder)), at=instant)
    local = LocalRestore(LocalLake(str(driver.folder)), at=instant)
    only = RestoreFilter(groups=("g",), kinds=("letter",))
    of_group = LocalRestore(LocalLake(str(driver.folder)), at=instant, wanted=only)
    spark_of_group = SparkRestore(SparkLake(spark, str(driver.folder)), at=instant, wanted=only)
    assert by_id(spark_of_group.heads()) == by_id(of_group.heads()) != {}

    rows = list(local.rows())
    assert list(through_spark.rows()) == rows
    assert {row["state"] for row in rows} == {"ready", "waiting", "dead"}
    assert any(row[ENDED_AT] for row in rows)
    assert through_spark.bounds == local.bounds
    assert through_spark.queue_settings() == local.queue_settings()
    assert by_id(through_spark.heads()) == by_id(local.heads())


def test_both_engines_find_the_same_ended_messages(spark, driver):
    busy_days(driver)
    selected: dict[str, Any] = {
        "from_at": 0,
        "to_at": driver.store_driver.now,
        "outcomes": ["dead", "done"],
        "wanted": RestoreFilter(queues=("post",), states=("ready",), kinds=("letter",)),
    }

    through_spark = SparkEnded(SparkLake(spark, str(driver.folder)), **selected)
    local = LocalEnded(LocalLake(str(driver.folder)), **selected)

    rows = list(local.rows())
    assert list(through_spark.rows()) == rows
    assert {row["outcome"] for row in rows} == {"dead", "done"}
    assert {(row["queue"], row["body"] is None) for row in rows} == {("post", False)}
    assert {tuple(sorted(head)) for head in through_spark.heads()} == {
        ("has_body", "id", "kind", "queue", "state")
    }


def by_id(heads: Iterable[Row]) -> dict[str, Row]:
    return {head["id"]: head for head in heads}


def test_without_a_later_snapshot_what_the_lake_knows_is_restored(driver):
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

    found = summary(at(driver, store_driver.now))

    assert set(found) == set(before[1:])
    assert lost not in found


def test_waiting_messages_keep_their_dates_and_keys(driver):
    store_driver = driver.store_driver
    mail = store_driver.queue("mail")
    later = store_driver.send(
        mail, delay_ms=60_000, kind="letter", tags=("a",), dedup_key="k", attributes={"x": "y"},
        max_attempts=9, priority=4, expires_in_ms=90_000,
    )  # fmt: skip
    driver.snapshots.take()
    driver.run()

    [row] = at(driver, store_driver.now)

    message = store_driver.get(later)
    assert (row["id"], row["state"], row["due_at"]) == (later, "waiting", message.due_at)
    assert (row["kind"], row["tag1"], row["priority"], row["max_attempts"]) == ("letter", "a", 4, 9)
    assert (row["dedup_key"], row["expires_at"]) == ("k", message.expires_at)
    assert (row["attributes"], row["sent_at"]) == ('{"x":"y"}', message.sent_at)


def test_a_filter_selects_by_queue_kind_group_state_and_either_tag():
    names = ("queue", "state", "kind", "group_key", "tag1", "tag2")
    rows = [
        dict(zip(names, values, strict=True))
        for values in (
            ("a", "ready", "k", "g", None, "t"),
            ("a", "dead", "k", None, None, None),
            ("b", "ready", None, "g", "t", "u"),
        )
    ]

    def places(**wanted: Any) -> list[int]:
        return [n for n, row in enumerate(rows) if RestoreFilter(**wanted).matches(row)]

    assert places() == [0, 1, 2]
    assert places(queues=("a",)) == [0, 1]
    assert places(kinds=("k",), states=("ready",)) == [0]
    assert places(groups=("g", "h")) == [0, 2]
    assert places(tags=("t",)) == [0, 2]
    assert places(tags=("t", "u")) == [2]


def test_the_snapshots_on_both_sides_are_found():
    snapshots = [(10, 1), (30, 3), (20, 2)]
    found = [bounds_of(snapshots, at=instant) for instant in (5, 20, 25, 99)]
    assert found == [
        Bounds(None, None, 1), Bounds(2, 20, 2), Bounds(2, 20, 3), Bounds(3, 30, None),
    ]  # fmt: skip


def test_a_message_that_was_restored_before_is_recognised_by_its_id(driver):
    """It got a new number then, under which it has ended since."""
    store_driver = driver.store_driver
    mail = store_driver.queue("mail")
    store_driver.send(mail)
    lost = store_driver.send(mail)
    driver.snapshots.take()
    driver.run()
    before = store_driver.now
    [row] = [row for row in at(driver, before) if row["id"] == lost]
    store_driver.clock.advance(ms=10)
    _forget(store_driver, lost)
    RestoreService(store_driver.store, store_driver.clock).put([row]).result()
    store_driver.clock.advance(ms=10)
    for message in store_driver.claim(mail, 2):
        store_driver.complete(message)
    driver.run()

    again = {row["id"]: row for row in at(driver, before)}

    ended = {r["id"]: r for r in driver.rows(lake.HISTORY)}[lost]
    assert ended["message_no"] != row["message_no"]
    assert again[lost] == {**row, ENDED_AT: ended["finished_at"]}
    assert len(at(driver, before)) == len(again), "each of them once"


def _forget(store_driver: StoreDriver, message_id: str) -> None:
    """Lose a message without a trace, as a damaged disk does."""
    delete = f"DELETE FROM message WHERE id = '{message_id}'"
    store_driver.write(lambda s: s.db.execute(delete))  # type: ignore[attr-defined]


def test_a_lake_that_is_too_large_is_refused_before_the_memory_is_used(driver):
    busy_days(driver)

    with pytest.raises(PipelineStopped, match="fewer queues or kinds") as stopped:
        LocalRestore(
            LocalLake(str(driver.folder)), at=driver.store_driver.now, memory=Memory(10_000)
        )

    assert stopped.value.code == "lake_too_large"


@pytest.mark.parametrize(
    "wanted",
    [{"queues": ("mail",)}, {"kinds": ("letter",)}, {"groups": ("g",)}, {"tags": ("t",)}],
)
def test_a_filter_keeps_only_the_evidence_of_its_messages_in_memory(driver, wanted):
    store_driver = driver.store_driver
    bulk, mail = store_driver.queue("bulk"), store_driver.queue("mail")
    store_driver.send_many(bulk, 500, kind="other", body='"b"')
    store_driver.send(mail, kind="letter", group="g", tags=("t",), body='"b"')
    driver.snapshots.take()
    driver.run()
    folder, now = LocalLake(str(driver.folder)), store_driver.now
    chosen = RestoreFilter(**wanted)

    with pytest.raises(PipelineStopped):
        LocalRestore(folder, at=now, memory=Memory(20_000))
    restored = LocalRestore(folder, at=now, wanted=chosen, memory=Memory(20_000))

    assert [row["queue"] for row in restored.rows()] == ["mail"]


def test_a_damaged_file_is_named(driver):
    busy_days(driver)
    [file, *_] = sorted(driver.folder.glob("attempts/*/*.parquet"))
    file.write_bytes(file.read_bytes()[:100])

    with pytest.raises(
        PipelineStopped, match=r"^attempts/dt=\S+\.parquet cannot be read"
    ) as stopped:
        at(driver, driver.store_driver.now)

    assert stopped.value.code == "unreadable_file"


def test_numbers_are_found_wherever_they_begin():
    numbers = NumberSet(Memory())
    assert numbers.contains(pa.array([1, 2])).to_pylist() == [False, False]
    for some in ([7, 9], [], [3], [12]):
        numbers.add(pa.array(some, pa.int64()))
    found = numbers.contains(pa.array(range(2, 14))).to_pylist()
    assert [n for n, is_in in enumerate(found, start=2) if is_in] == [3, 7, 9, 12]
