"""Settings of the lake, of the pipeline that reads it, and of the tables that it computes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from penstock.domain.described import setting
from penstock.domain.errors import InvalidRequest
from penstock.domain.lake.pipeline_settings import TENANTS, PipelineSettings
from penstock.domain.lake.slo_targets import read_targets
from penstock.domain.limits import DAY, HOUR, MIB, MINUTE, SECOND


@dataclass(frozen=True, kw_only=True)
class ArchiveSettings:
    enabled: bool = setting(
        False, "write history to the lake; history is pruned only once it is written"
    )
    folder: str | None = setting(
        None,
        "folder or URL (s3://, gs://, abfs://) of the lake, shared by all nodes; "
        "unset: lake in the data folder",
    )
    format: Literal["parquet", "delta"] = setting(
        "parquet", "format of the lake's tables: plain Parquet, or Delta Lake on top of it"
    )
    every_ms: int = setting(10 * MINUTE, "interval between writes to the lake", SECOND, DAY)
    bodies: bool = setting(True, "also write the bodies of finished messages; a restore needs them")
    snapshot_every_ms: int = setting(
        HOUR, "interval between snapshots; 0: only on request", 0, 30 * DAY
    )
    snapshots: int = setting(48, "number of latest snapshots to keep", 1, 100_000)


@dataclass(frozen=True, kw_only=True)
class InsightsSettings:
    folder: str | None = setting(
        None, "folder or URL of the pipeline's tables; unset: derived in the lake's folder"
    )


@dataclass(frozen=True, kw_only=True)
class SqlSettings:
    max_rows: int = setting(10_000, "maximum number of rows in a result", 1, 100_000_000)
    max_memory_bytes: int = setting(
        512 * MIB,
        "memory limit of a SQL statement, plus up to 1 GiB for read-ahead",
        16 * MIB,
        2**40,
    )
    timeout_ms: int = setting(30 * SECOND, "how long a SQL statement may take", 100, DAY)
    max_running: int = setting(
        2, "SQL statements that a server runs at the same time; 0: none", 0, 64
    )


@dataclass(frozen=True, kw_only=True)
class SamplesSettings:
    retention_days: int = setting(90, "days for which the data of the graphs is kept", 4, 3660)


def check_pipeline(pipeline: PipelineSettings) -> None:
    """Raise InvalidRequest for an invalid value."""
    read_targets(pipeline.targets)
    if pipeline.tenant not in TENANTS:
        raise InvalidRequest(
            f"pipeline.tenant is {pipeline.tenant[:40]!r}; use one of {', '.join(TENANTS)}"
        )
    try:
        is_cost = float(pipeline.cost_per_gib) >= 0
    except ValueError:
        is_cost = False
    if not is_cost:
        raise InvalidRequest(
            f"pipeline.cost_per_gib is {pipeline.cost_per_gib[:40]!r}; use a number such as 0.09"
        )
