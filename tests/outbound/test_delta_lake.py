"""The lake as Delta tables: what any program that knows them reads, and when."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from penstock.domain.errors import InvalidRequest
from penstock.domain.lake import layout as lake
from penstock.files.delta_log import DeltaLog
from penstock.files.folder import open_folder
from penstock.outbound.lake_files import LakeFiles
from penstock.ports.archive import LakeFileWriter
from tests.runtime.archiver.driver import ArchiverDriver, rows_of
from tests.store.conftest import clock, open_store, renewable_database, store, store_driver
from tests.store.driver import StoreDriver

__all__ = ["clock", "open_store", "renewable_database", "store", "store_driver"]


@pytest.fixture
def backend() -> str:
    return "sqlite"


class DeltaDriver(ArchiverDriver):
    def __init__(self, store_driver: StoreDriver, folder: Path) -> None:
        super().__init__(store_driver, folder, is_delta=True)

    def rows(self, table: lake.LakeTable) -> list[dict[str, Any]]:
        rows = DeltaTable(self.folder / table.name).to_pyarrow_table().to_pylist()
        return list(rows)


@pytest.fixture
def driver(store_driver: StoreDriver, tmp_path: Path) -> DeltaDriver:
    return DeltaDriver(store_driver, tmp_path / "lake")


def test_every_row_is_in_the_table_once_and_in_the_plain_files(driver):
    mail = driver.store_driver.queue("mail")
    ids = driver.finish(mail, 5)
    driver.run()
    ids += driver.finish(mail, 4)

    driver.run()
    driver.run()

    assert sorted(driver.ids(lake.HISTORY)) == sorted(driver.ids(lake.BODIES)) == sorted(ids)
    plain = [row["id"] for row in rows_of(driver.folder, lake.HISTORY)]
    assert sorted(plain) == sorted(ids)
    assert {row["dt"] for row in driver.rows(lake.HISTORY)} == {lake.dt_of(driver.store_driver.now)}


@pytest.mark.parametrize("step", ["keep", "add", "move"])
def test_a_run_stopped_at_any_step_leaves_the_rest_to_the_next(driver, monkeypatch, step):
    ids = driver.finish(driver.store_driver.queue("mail"), 5)
    places = {
        "keep": "penstock.files.local_folder.LocalFile.keep",
        "add": "penstock.files.delta_log.DeltaLog.add",
        "move": "penstock.store.entities.archive.SqlArchive.move",
    }

    def stopped(*_args: object, **_more: object) -> None:
        raise RuntimeError("just here")

    with monkeypatch.context() as broken:
        broken.setattr(places[step], stopped)
        with pytest.raises(Exception, match="just here"):
            driver.run()

    driver.run()

    assert sorted(driver.ids(lake.HISTORY)) == sorted(driver.ids(lake.BODIES)) == sorted(ids)


def test_a_plain_lake_becomes_one_of_delta_tables_and_stays_one(driver, store_driver):
    plain = ArchiverDriver(store_driver, driver.folder)
    mail = store_driver.queue("mail")
    ids = driver.finish(mail, 2)
    plain.run()
    ids += driver.finish(mail, 3)
    driver.run()
    assert sorted(driver.ids(lake.HISTORY)) == sorted(ids)
    ids += driver.finish(mail, 1)

    ArchiverDriver(store_driver, driver.folder).run()  # the setting is parquet again

    assert sorted(driver.ids(lake.HISTORY)) == sorted(ids)


def another_file(node: ArchiverDriver) -> LakeFileWriter:
    """One row more, which is not in the lake yet."""
    row = node.rows(lake.HISTORY)[0]
    file = node.files.file(lake.HISTORY, row["dt"], lake.Range(9, 9))
    file.add([tuple(row[column.name] for column in lake.HISTORY.columns)])
    return file


def test_a_node_with_the_other_setting_notices_that_the_tables_have_a_log_now(driver, store_driver):
    node = ArchiverDriver(store_driver, driver.folder)
    mail = store_driver.queue("mail")
    ids = node.finish(mail, 2)
    node.run()
    ids += node.finish(mail, 3)
    driver.run()
    ids += node.finish(mail, 4)

    node.run()
    node.snapshots.take()

    assert sorted(driver.ids(lake.HISTORY)) == sorted(driver.ids(lake.BODIES)) == sorted(ids)
    assert [no for _, no in driver.files.snapshots()] == [1]


def test_a_log_that_appears_while_a_file_is_written_gets_the_file(driver, store_driver):
    node = ArchiverDriver(store_driver, driver.folder)
    mail = store_driver.queue("mail")
    node.finish(mail, 2)
    node.run()
    file = another_file(node)

    node.finish(mail, 1)
    driver.run()
    file.keep()

    assert len(driver.ids(lake.HISTORY)) == 4


def test_a_file_that_appears_while_the_log_is_created_is_listed(driver, store_driver, monkeypatch):
    node = ArchiverDriver(store_driver, driver.folder)
    mail = store_driver.queue("mail")
    node.finish(mail, 2)
    node.run()
    file = another_file(node)
    create = DeltaLog.create

    def create_late(log: DeltaLog, *given: Any) -> None:
        """The existing files are known by now."""
        if log.place.endswith("/history"):
            file.keep()
        create(log, *given)

    monkeypatch.setattr(DeltaLog, "create", create_late)

    node.finish(mail, 1)
    driver.run()

    assert len(driver.ids(lake.HISTORY)) == 4


def test_files_that_a_log_lacks_are_added_when_an_archiver_starts(driver, store_driver, tmp_path):
    mail = store_driver.queue("mail")
    ids = driver.finish(mail, 2)
    driver.run()
    log = driver.folder / "history" / "_delta_log"
    log.rename(tmp_path / "log")
    ids += driver.finish(mail, 3)
    ArchiverDriver(store_driver, driver.folder).run()  # of an archiver that knows no logs
    (tmp_path / "log").rename(log)
    assert len(driver.ids(lake.HISTORY)) == 2
    ids += driver.finish(mail, 1)

    ArchiverDriver(store_driver, driver.folder).run()

    assert sorted(driver.ids(lake.HISTORY)) == sorted(ids)


def test_a_snapshot_is_one_version_and_a_removed_one_stays_for_older_versions(driver):
    driver.store_driver.send_many(driver.store_driver.queue("mail"), 3)
    for _ in range(3):
        driver.snapshots.take()
    before = DeltaTable(driver.folder / "snapshots").version()

    driver.snapshots.keep_only(2)

    assert [no for _, no in driver.files.snapshots()] == [2, 3]
    assert {row["snapshot_no"] for row in driver.rows(lake.SNAPSHOTS)} == {2, 3}
    assert {row["snapshot_no"] for row in driver.rows(lake.QUEUES)} == {2, 3}
    log = DeltaLog(str(driver.folder / "snapshots"))
    assert len(log.files()) < len(log.files(as_of=before))
    assert all((driver.folder / "snapshots" / f.path).exists() for f in log.files(as_of=before))


def test_the_lake_may_be_in_an_object_store(store_driver, s3_place):
    driver = DeltaDriver(store_driver, s3_place)
    driver.finish(store_driver.queue("mail"), 4)

    driver.run()
    driver.snapshots.take()

    log = DeltaLog(f"{s3_place}/history")
    assert len(log.files()) == 1
    assert [no for _, no in driver.files.snapshots()] == [1]


def test_without_deltalake_the_error_names_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "deltalake", None)

    with pytest.raises(InvalidRequest, match=r"penstock-queue\[delta\]"):
        LakeFiles(open_folder(str(tmp_path), str), is_delta=True)
