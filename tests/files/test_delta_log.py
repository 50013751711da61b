"""The log of a Delta table, on a disk and in an object store."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from penstock.domain.errors import FilesChanged, InvalidRequest, LakeUnreachable
from penstock.domain.lake.places import join
from penstock.files.delta_log import DeltaLog, DeltaSchema, log_of
from penstock.files.folder import FileEntry, open_folder

NUMBERS = pa.schema([pa.field("number", pa.int64(), False)])
DT = pa.field("dt", pa.string())
TABLE = DeltaSchema("numbers", "some numbers", pa.schema([*NUMBERS, DT]), ("dt",))
WIDE = pa.schema([*NUMBERS, pa.field("ratio", pa.float64())])


@pytest.fixture(params=["disk", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    is_disk = request.param == "disk"
    return join(str(tmp_path) if is_disk else request.getfixturevalue("s3_place"), "numbers")


@pytest.fixture
def log(place: str) -> DeltaLog:
    log = DeltaLog(place)
    log.create(TABLE, [])
    return log


def a_file(place: str, name: str, *rows: dict, day: str = "2030-01-01", of=NUMBERS) -> FileEntry:
    new = open_folder(place, str).new_file(f"dt={day}/{name}.parquet")
    pq.write_table(pa.Table.from_pylist(list(rows), of), new.out)
    return new.keep()


def numbers(place: str, version: int | None = None) -> list[int]:
    """As any program that knows Delta Lake reads them."""
    options = {"aws_endpoint": os.environ.get("AWS_ENDPOINT_URL", ""), "aws_allow_http": "true"}
    table = DeltaTable(place, version, storage_options=options if "s3" in place else None)
    return sorted(table.to_pyarrow_table()["number"].to_pylist())


def test_added_files_are_listed_and_read_by_any_program(log, place):
    first = a_file(place, "a", {"number": 1}, {"number": 2})
    second = a_file(place, "b", {"number": 3}, day="2030-01-02")
    assert numbers(place) == []

    log.add(TABLE, [first])
    log.add(TABLE, [second])

    assert log_of(place) is not None
    assert log.files() == [first, second]
    assert numbers(place) == [1, 2, 3]


def test_adding_a_file_again_changes_nothing(log, place):
    for _ in range(2):
        log.add(TABLE, [a_file(place, "a", {"number": 1})])

    assert numbers(place) == [1]


def test_days_are_replaced_in_one_version_and_older_ones_stay_readable(log, place):
    old = [a_file(place, name, {"number": n}) for n, name in enumerate("ab")]
    other = a_file(place, "c", {"number": 7}, day="2030-01-02")
    log.add(TABLE, [*old, other])

    new = a_file(place, "d", {"number": 5})
    log.replace(TABLE, [new], ["2030-01-01", "2030-01-03"])

    assert log.files() == [new, other]
    assert numbers(place) == [5, 7]
    assert log.files(as_of=1) == [*old, other]
    assert numbers(place, version=1) == [0, 1, 7]
    assert [one.version for one in log.versions(2)] == [2, 1]


def test_a_day_without_new_rows_becomes_empty(log, place):
    log.add(TABLE, [a_file(place, "a", {"number": 1})])

    log.replace(TABLE, [], ["2030-01-01"])

    assert log.files() == []


def test_a_later_column_is_added_and_null_in_older_files(log, place):
    log.add(TABLE, [a_file(place, "a", {"number": 1})])
    wide = TABLE._replace(schema=pa.schema([*WIDE, DT]))
    log.add(wide, [a_file(place, "b", {"number": 2, "ratio": 0.5}, of=WIDE)])

    log.add(TABLE, [a_file(place, "c", {"number": 3})])  # a writer of the older version

    assert numbers(place) == [1, 2, 3]
    if "s3" not in place:
        rows = DeltaTable(place).to_pyarrow_table().sort_by("number")
        assert rows["ratio"].to_pylist() == [None, 0.5, None]


def test_removed_files_are_deleted_after_the_retention_only(log, place):
    first = a_file(place, "a", {"number": 1})
    log.add(TABLE, [first])
    log.replace(TABLE, [a_file(place, "b", {"number": 2})], ["2030-01-01"])

    assert log.vacuum() == []
    assert open_folder(place, str).read(first.path) is not None


def test_files_without_a_log_are_taken_over(place):
    files = [a_file(place, name, {"number": n}) for n, name in enumerate("ab")]
    assert log_of(place) is None

    DeltaLog(place).create(TABLE, files)
    DeltaLog(place).create(TABLE, [])

    assert numbers(place) == [0, 1]


def test_the_second_of_two_concurrent_replacements_is_rejected(log, place, monkeypatch):
    log.add(TABLE, [a_file(place, "a", {"number": 1})])
    mine, other = (a_file(place, name, {"number": 2}) for name in ("b", "c"))
    opened = DeltaLog(place)._open()  # the other one read the log before
    other_log = DeltaLog(place)
    monkeypatch.setattr(other_log, "_open", lambda as_of=None: opened)
    log.replace(TABLE, [mine], ["2030-01-01"])

    with pytest.raises(FilesChanged):
        other_log.replace(TABLE, [other], ["2030-01-01"])

    assert log.files() == [mine]


def test_a_version_that_does_not_exist_is_rejected(log):
    with pytest.raises(InvalidRequest, match="has no version 7"):
        log.files(as_of=7)


def test_a_table_that_does_not_exist_has_no_log(place):
    assert log_of(f"{place}/none") is None
    with pytest.raises(InvalidRequest, match="is not a Delta table"):
        DeltaLog(f"{place}/none").files()


def test_an_object_store_that_rejects_the_commit_is_named_in_one_line(s3_place):
    with pytest.raises(
        LakeUnreachable, match=r"^s3://no-such-bucket/numbers cannot be reached: .+$"
    ):
        DeltaLog("s3://no-such-bucket/numbers").create(TABLE, [])


def test_a_commit_is_synced_as_the_files_are(tmp_path, monkeypatch):
    place = str(tmp_path / "numbers")
    log = DeltaLog(place)
    log.create(TABLE, [])
    file = a_file(place, "a", {"number": 1})
    synced: list[str] = []
    sync = os.fsync

    def noted(handle: int) -> None:
        synced.append(os.path.basename(os.readlink(f"/proc/self/fd/{handle}")))
        sync(handle)

    monkeypatch.setattr(os, "fsync", noted)
    log.add(TABLE, [file])

    assert synced == ["00000000000000000001.json", "_delta_log"]
