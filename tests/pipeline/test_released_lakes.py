"""Lakes that other versions wrote are read: nulls for what they lack, unknown columns ignored."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.domain.errors import LakeRefused
from penstock.domain.lake.layout import HISTORY, MARKER, SCHEMA_VERSION, TABLES, LakeTable
from penstock.domain.lake.pipeline_settings import PipelineSettings
from penstock.domain.lake.sql import SqlLimits
from penstock.files.folder import open_folder
from penstock.outbound.lake_files import LakeFiles
from penstock.outbound.lake_sql.datasets import LakeDatasets
from penstock.outbound.lake_sql.locked_database import run
from penstock.pipeline.files.local_lake import LocalLake
from penstock.pipeline.jobs.lifecycle import JOB
from penstock.pipeline.lake import SparkLake
from tests.edge.process import ROOT

SQL_LIMITS = SqlLimits(rows=10_000, bytes=2**24, memory_bytes=2**29, timeout_ms=60_000)
LAKES = sorted((ROOT / "tests/pipeline/released").glob("*/lake"))


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """A copy of the latest released lake."""
    return Path(shutil.copytree(LAKES[-1], tmp_path / "lake"))


def rows_of(folder: Path, table: str) -> list[dict]:
    """As the file has them, without the names of its folders."""
    paths = sorted((folder / table).glob("**/*.parquet"))
    return [row for path in paths for row in pq.ParquetFile(path).read().to_pylist()]


def read_locally(folder: Path, table: LakeTable) -> Iterator[dict]:
    """As a restore without Spark reads it."""
    names = [column.name for column in table.columns]
    for _, batch in LocalLake(str(folder)).batches(table, names):
        yield from batch.to_pylist()


def read_by_sql(folder: Path, table: LakeTable) -> Iterator[dict]:
    names = [column.name for column in table.columns]
    quoted = ", ".join(f'"{name}"' for name in names)
    datasets = LakeDatasets(str(folder), f"{folder}/derived")
    result = run(f"SELECT {quoted} FROM {table.name}", datasets, SQL_LIMITS)
    for row in msgspec.json.decode(msgspec.json.encode(result.rows)):
        yield dict(zip(names, row, strict=True))


def change(folder: Path, table: str, columns) -> None:
    for path in (folder / table).glob("**/*.parquet"):
        pq.write_table(columns(pq.ParquetFile(path).read()), path)


@pytest.mark.parametrize("folder", LAKES, ids=lambda folder: folder.parent.name)
def test_every_table_of_a_released_lake_is_read(spark, folder):
    lake = SparkLake(spark, str(folder))
    for name, table in TABLES.items():
        written = rows_of(folder, name)
        read = [row.asDict() for row in lake.read(name).orderBy(table.number).collect()]
        assert written, f"the lake has no rows of {name}"
        for row, found in zip(sorted(written, key=lambda r: r[table.number]), read, strict=True):
            assert {key: found[key] for key in row} == row
            assert all(found[c.name] is None for c in table.columns if c.name not in row)


@pytest.mark.parametrize("folder", LAKES, ids=lambda folder: folder.parent.name)
@pytest.mark.parametrize("read", [read_locally, read_by_sql])
def test_every_table_of_a_released_lake_is_read_without_spark(folder, read):
    for name, table in TABLES.items():
        written = rows_of(folder, name)
        found = sorted(read(folder, table), key=lambda row: row[table.number])
        assert written, f"the lake has no rows of {name}"
        for row, one in zip(sorted(written, key=lambda r: r[table.number]), found, strict=True):
            assert one == dict.fromkeys(one) | row


@pytest.mark.parametrize("read", [read_locally, read_by_sql])
def test_without_spark_a_column_that_an_older_version_lacks_is_null(lake, read):
    change(lake, "history", lambda rows: rows.drop_columns(["route"]))
    change(lake, "history", lambda t: t.add_column(0, "later", pa.array(["x"] * t.num_rows)))

    found = list(read(lake, HISTORY))

    assert {row["route"] for row in found} == {None}
    assert "later" not in found[0]
    assert len(found) == len(rows_of(lake, "history"))


def test_a_column_that_an_older_version_lacks_is_null(spark, lake):
    change(lake, "history", lambda rows: rows.drop_columns(["route", "held_key"]))

    read = SparkLake(spark, str(lake)).read("history")

    assert {(row.route, row.held_key) for row in read.collect()} == {(None, None)}
    ended = JOB.outputs[0].transform({"history": read}, PipelineSettings())
    assert ended.count() == len(rows_of(lake, "history"))


def test_columns_of_a_newer_version_are_ignored(spark, lake):
    before = SparkLake(spark, str(lake)).read("history").collect()

    change(lake, "history", lambda t: t.add_column(0, "later", pa.array(["x"] * t.num_rows)))

    assert SparkLake(spark, str(lake)).read("history").collect() == before


def test_a_lake_of_this_version_is_written_to_and_a_newer_one_is_not(lake):
    files = LakeFiles(open_folder(str(lake), str))
    assert files.id() is not None
    text = (lake / MARKER).read_text()
    assert f'"schema_version":{SCHEMA_VERSION}' in text

    newer = text.replace(f":{SCHEMA_VERSION}", f":{SCHEMA_VERSION + 1}")
    (lake / MARKER).write_text(newer)

    with pytest.raises(LakeRefused, match=f"schema version {SCHEMA_VERSION + 1}"):
        files.id()
