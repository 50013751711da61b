"""The benchmark of incremental runs: its days are like the one that they are copied from."""

from __future__ import annotations

from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.pipeline.incremental import (
    CONTINUED,
    FIRST_MIDNIGHT,
    LAKE_TABLES,
    NUMBERS_OF_A_DAY,
    copy_lake,
)
from penstock.domain.lake import layout
from penstock.domain.limits import DAY
from penstock.pipeline.demo.make import make


def test_a_copied_day_has_the_same_rows_at_later_instants_with_other_numbers(tmp_path: Path):
    base, copy = tmp_path / "base", tmp_path / "copy"
    make(base, messages=200, days=1, first_midnight=FIRST_MIDNIGHT)

    copy_lake(base, copy, 3, files=4)

    first, later = (layout.dt_of(FIRST_MIDNIGHT + day * DAY) for day in (0, 3))
    for table in LAKE_TABLES:
        [before] = (base / layout.folder(table, first)).glob("*.parquet")
        files = sorted((copy / layout.folder(table, later)).glob("*.parquet"))
        rows = [pq.ParquetFile(file).read() for file in files]
        ranges = [layout.range_of(table, file.name) for file in files]
        assert 1 < len(files) <= 4
        assert sum(part.num_rows for part in rows) == pq.read_metadata(before).num_rows
        for part, numbers in zip(rows, ranges, strict=True):
            found = pc.min_max(part.column(table.number)).as_py()
            assert numbers == layout.Range(found["min"], found["max"])
            assert (found["min"] > 3 * NUMBERS_OF_A_DAY) == (table.number in CONTINUED)
            days = pc.unique(pc.divide(part.column(table.instant), DAY)).to_pylist()
            assert days == [FIRST_MIDNIGHT // DAY + 3]
