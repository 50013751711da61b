"""A server archives by itself, once for the whole cluster."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path
from threading import Event

import pytest

from penstock.domain.errors import LakeRefused
from penstock.domain.lake import layout as lake
from penstock.domain.limits import HOUR, MINUTE
from penstock.runtime.archiver.duties import ArchiveDuty, SnapshotDuty
from penstock.runtime.minute_counters import Sampler
from penstock.settings import Settings
from penstock.settings.pipeline import ArchiveSettings
from penstock.wiring.broker import open_broker
from tests.clocks import ManualClock
from tests.runtime.archiver.driver import ArchiverDriver, rows_of
from tests.store.driver import StoreDriver

TABLES = (lake.HISTORY, lake.SNAPSHOTS)
STEP_S, STEPS = 0.05, 1_200


def test_one_of_several_nodes_archives_per_interval(driver):
    store_driver = driver.store_driver
    nodes = [ArchiveDuty(store_driver.store, driver.archiver, every_ms=MINUTE) for _ in range(2)]
    driver.finish(store_driver.queue("mail"))

    assert nodes[0].tick(store_driver.now) == store_driver.now + MINUTE
    assert len(driver.rows(lake.HISTORY)) == 1
    driver.finish(store_driver.queues[0])
    assert nodes[1].tick(store_driver.now) < store_driver.now + MINUTE, (
        "it looks again soon: the other may die"
    )
    assert len(driver.rows(lake.HISTORY)) == 1

    store_driver.clock.advance(ms=MINUTE)
    nodes[1].tick(store_driver.now)
    assert len(driver.rows(lake.HISTORY)) == 2


def test_counters_are_sampled_when_a_minute_begins(driver):
    store_driver = driver.store_driver
    store_driver.send(store_driver.queue("mail"))
    store_driver.clock.advance(ms=20_000)
    nodes = [
        Sampler(store_driver.store, retention_days=90, is_archived=is_archived)
        for is_archived in (False, True, True)
    ]

    assert {node.tick(store_driver.now) for node in nodes} == {store_driver.now + 40_000}

    store_driver.clock.advance(ms=40_000)
    for node in nodes:
        node.tick(store_driver.now)
    driver.run()
    assert [row["at"] for row in driver.rows(lake.BACKLOG)] == [
        store_driver.now - 40_000,
        store_driver.now,
    ]


def test_snapshots_are_taken_by_one_node_each_and_old_ones_removed(driver):
    store_driver = driver.store_driver
    duty = SnapshotDuty(store_driver.store, driver.snapshots, every_ms=HOUR, keep=2)
    for _ in range(3):
        assert duty.tick(store_driver.now) == store_driver.now + HOUR
        assert duty.tick(store_driver.now) < store_driver.now + HOUR
        store_driver.clock.advance(ms=HOUR)
    assert [no for _, no in driver.files.snapshots()] == [2, 3]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data=str(tmp_path), archive=ArchiveSettings(enabled=True))


def test_a_server_archives_if_enabled(settings):
    clock = ManualClock()
    with closing(open_broker(settings, clock=clock)) as broker:
        store_driver = StoreDriver(broker.store, clock)
        mail = store_driver.queue("mail")
        store_driver.send_many(mail, 2)
        store_driver.complete(store_driver.claim(mail)[0])
        broker.start_archiving()
        # Closing would interrupt it.
        for _ in range(STEPS):
            if all(rows_of(Path(settings.lake_folder), table) for table in TABLES):
                break
            Event().wait(STEP_S)
    assert [len(rows_of(Path(settings.lake_folder), table)) for table in TABLES] == [1, 1]


def test_a_server_does_not_archive_by_default(tmp_path):
    with closing(open_broker(Settings(data=str(tmp_path)))) as broker:
        broker.start_archiving()
        assert broker._archiving is None


def test_a_server_without_pyarrow_says_so_at_the_start(settings, monkeypatch):
    monkeypatch.setitem(sys.modules, "penstock.outbound.lake_files", None)
    with (
        closing(open_broker(settings)) as broker,
        pytest.raises(LakeRefused, match=r"penstock-queue\[archive\]"),
    ):
        broker.start_archiving()


def test_it_stops_while_it_writes(settings, tmp_path):
    with closing(open_broker(settings)) as broker:
        store_driver = StoreDriver(broker.store, broker.clock)  # type: ignore[arg-type]
        driver = ArchiverDriver(store_driver, Path(settings.lake_folder))
        driver.finish(store_driver.queue("mail"), 100)
        broker.start_archiving()
    # Closing has waited for the loop: nothing half written is left.
    assert list(Path(settings.lake_folder).glob("**/.tmp*")) == []
