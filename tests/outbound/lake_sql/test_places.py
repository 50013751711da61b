"""SQL on lakes in an object store, and on Delta tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.domain.lake.places import join
from penstock.domain.lake.sql import SqlLimits
from penstock.files.delta_log import DeltaLog, DeltaSchema
from penstock.files.folder import FileEntry, open_folder
from penstock.outbound.lake_sql.runner import SqlProcesses

LIMITS = SqlLimits(rows=10, bytes=1_000_000, memory_bytes=512 * 2**20, timeout_ms=60_000)
DAY = "2031-01-01"
COLUMNS = pa.schema([pa.field("bad", pa.int64())])
SLO = DeltaSchema("slo", "", pa.schema([*COLUMNS, pa.field("dt", pa.string())]), ("dt",))


@pytest.fixture(params=["disk", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path) if request.param == "disk" else request.getfixturevalue("s3_place")


def a_file(place: str, name: str, bad: int) -> FileEntry:
    new = open_folder(join(place, "derived/slo"), str).new_file(f"dt={DAY}/{name}.parquet")
    pq.write_table(pa.Table.from_pylist([{"bad": bad}], COLUMNS), new.out)
    return new.keep()


def rows(place: str) -> list[Any]:
    found = SqlProcesses(place, join(place, "derived")).run("SELECT bad, dt FROM slo", LIMITS)
    return list(found.rows)


def test_tables_may_be_in_an_object_store(place):
    a_file(place, "one", 7)

    assert rows(place) == [[7, DAY]]


def test_only_the_newest_version_of_a_delta_table_is_read(place):
    log = DeltaLog(join(place, "derived/slo"))
    log.create(SLO, [a_file(place, "old", 1)])
    log.replace(SLO, [a_file(place, "new", 2)], [DAY])

    assert rows(place) == [[2, DAY]]
