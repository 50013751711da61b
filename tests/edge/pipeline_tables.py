"""Tables like those of the lake and of the pipeline, written without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.domain.lake import layout
from penstock.domain.lake.layout import HISTORY, LakeTable, Range, Type
from penstock.outbound.lake_files import schema_of
from tests.domain.insights.rows import backtest, tuned

_ZERO = {Type.TEXT: "", Type.INT: 0, Type.LONG: 0, Type.BOOL: False}


def write_day(folder: Path, table: str, day: str, rows: list[dict[str, Any]]) -> Path:
    place = folder / table / f"dt={day}"
    place.mkdir(parents=True, exist_ok=True)
    path = place / "part-00000.zstd.parquet"
    names = dict.fromkeys(name for row in rows for name in row)
    pq.write_table(pa.Table.from_pylist([dict.fromkeys(names) | row for row in rows]), path)
    return path


def write_tuning(folder: Path, day: str, *routes: str, threshold: int = 70) -> None:
    """Replays in which an outage is missed with the default settings, and detected with others."""
    rows = []
    for route in routes or ("*",):
        now = tuned("now", missed=1, failed=900)
        better = tuned(
            f"300s-{threshold}%",
            error_threshold_percentage=threshold,
            detection_ms=120_000,
            detection_max_ms=120_000,
            failed=40,
        )
        rows += [one | {"route": route} for one in (now, better)]
    write_day(folder, "breaker_tuning", day, [without_day(row) for row in rows])


def write_backtest(folder: Path, day: str, queue: str = "mail") -> None:
    """Back-tests in which a profile other than the default one is cheaper and faster."""
    rows = [backtest("now"), backtest("60s/3/+5", worker_hours=4.0, age_p99_ms=20_000)]
    write_day(
        folder, "scaling_backtest", day, [without_day(row) | {"queue": queue} for row in rows]
    )


def without_day(row: dict[str, Any]) -> dict[str, Any]:
    """As it is in a file: the day is in the name of its folder."""
    return {name: value for name, value in row.items() if name != "dt"}


def write_lake(
    lake: Path, day: str, rows: list[dict[str, Any]], *, table: LakeTable = HISTORY
) -> Path:
    """A file of the lake; columns that are not given are null or zero."""
    plain = {c.name: None if c.is_nullable else _ZERO[c.type] for c in table.columns}
    path = lake / layout.folder(table, day) / layout.file_name(table, Range(1, len(rows)))
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist([plain | row for row in rows], schema_of(table)), path)
    return path
