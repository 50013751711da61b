"""The archiver and its lake in an object store."""

from __future__ import annotations

import io
import os
from typing import Any

import pyarrow.parquet as pq
import pytest

from penstock.domain.errors import LakeRefused, LakeUnreachable
from penstock.domain.lake import layout as lake
from penstock.files.folder import open_folder
from penstock.files.object_folder import ObjectFolder
from tests.runtime.archiver.driver import ArchiverDriver
from tests.store.conftest import clock, open_store, renewable_database, store, store_driver
from tests.store.driver import StoreDriver

__all__ = ["clock", "open_store", "renewable_database", "store", "store_driver"]


@pytest.fixture
def backend() -> str:
    return "sqlite"


class S3Driver(ArchiverDriver):
    def rows(self, table: lake.LakeTable) -> list[dict[str, Any]]:
        folder = open_folder(str(self.folder), lambda: "1")
        found = []
        for file in folder.files(table.name):
            content = folder.read(file.path)
            assert content is not None
            found += pq.ParquetFile(io.BytesIO(content)).read().to_pylist()
        return found


@pytest.fixture
def driver(store_driver: StoreDriver, s3_place: str) -> S3Driver:
    return S3Driver(store_driver, s3_place)


def test_history_and_bodies_are_archived_each_row_once(driver):
    mail = driver.store_driver.queue("mail")
    ids = driver.finish(mail, 5)
    driver.run()
    ids += driver.finish(mail, 4)

    driver.run()
    again = driver.run()

    assert sorted(driver.ids(lake.HISTORY)) == sorted(driver.ids(lake.BODIES)) == sorted(ids)
    assert again.files == 0 or again.rows["history"] == 0


@pytest.mark.parametrize("failing", [1, 2, 3])
def test_a_failed_upload_leaves_no_part_and_the_next_run_repeats_it(driver, monkeypatch, failing):
    ids = driver.finish(driver.store_driver.queue("mail"), 5)
    upload, calls = ObjectFolder.upload, []

    def fails_once(self: ObjectFolder, source: str, path: str) -> Any:
        calls.append(path)
        if len(calls) == failing:
            raise LakeUnreachable("the network is down")
        return upload(self, source, path)

    monkeypatch.setattr(ObjectFolder, "upload", fails_once)
    with pytest.raises(LakeUnreachable):
        driver.run()

    driver.run()

    assert sorted(driver.ids(lake.HISTORY)) == sorted(driver.ids(lake.BODIES)) == sorted(ids)


def test_a_snapshot_of_many_files_is_one_object_per_table(driver, monkeypatch):
    monkeypatch.setattr("penstock.runtime.archiver.snapshots.ROWS_PER_FILE", 3)
    monkeypatch.setattr("penstock.runtime.archiver.snapshots.PAGE", 2)
    ids = driver.store_driver.send_many(driver.store_driver.queue("mail"), 10)

    driver.snapshots.take()

    assert sorted(driver.ids(lake.SNAPSHOTS)) == sorted(ids)
    assert [row["queue"] for row in driver.rows(lake.QUEUES)] == ["mail"]
    folder = open_folder(str(driver.folder), lambda: "1")
    [messages] = folder.files("snapshots")
    assert lake.range_of(lake.SNAPSHOTS, messages.name) is not None


def test_old_snapshots_are_removed(driver):
    driver.store_driver.send(driver.store_driver.queue("mail"))
    for _ in range(3):
        driver.snapshots.take()

    driver.snapshots.keep_only(2)

    assert [no for _, no in driver.files.snapshots()] == [2, 3]
    assert len(driver.rows(lake.QUEUES)) == 2


def test_a_discarded_snapshot_leaves_nothing(driver, monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    driver.store_driver.send(driver.store_driver.queue("mail"))
    monkeypatch.setattr(driver.snapshots, "_ended", lambda *_: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        driver.snapshots.take()

    assert driver.rows(lake.SNAPSHOTS) == driver.rows(lake.QUEUES) == []
    assert [name for name in os.listdir(tmp_path) if name.startswith("penstock-")] == []


def test_the_lake_of_another_store_is_refused(driver, open_store, tmp_path):
    driver.run()
    driver.files.create("another")

    with pytest.raises(LakeRefused, match=f"{driver.folder} belongs to another store"):
        driver.run()
