"""Tables like those of the pipeline, written without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.domain.insights.rows import backtest, tuned


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
