"""Tables like those of the pipeline, written without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq


def write_day(folder: Path, table: str, day: str, rows: list[dict[str, Any]]) -> Path:
    place = folder / table / f"dt={day}"
    place.mkdir(parents=True, exist_ok=True)
    path = place / "part-00000.zstd.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path
