"""Tables like those of the lake and of the pipeline, written without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.domain.lake import layout
from penstock.domain.lake.layout import HISTORY, LakeTable, Range, Type
from penstock.outbound.lake_files import schema_of

_ZERO = {Type.TEXT: "", Type.INT: 0, Type.LONG: 0, Type.BOOL: False}


def write_day(folder: Path, table: str, day: str, rows: list[dict[str, Any]]) -> Path:
    place = folder / table / f"dt={day}"
    place.mkdir(parents=True, exist_ok=True)
    path = place / "part-00000.zstd.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


def write_lake(
    lake: Path, day: str, rows: list[dict[str, Any]], *, table: LakeTable = HISTORY
) -> Path:
    """A file of the lake; columns that are not given are null or zero."""
    plain = {c.name: None if c.is_nullable else _ZERO[c.type] for c in table.columns}
    path = lake / layout.folder(table, day) / layout.file_name(table, Range(1, len(rows)))
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist([plain | row for row in rows], schema_of(table)), path)
    return path
