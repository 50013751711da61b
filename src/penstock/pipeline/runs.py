"""The log of runs: which job computed which day from which inputs, and how many rows.

It shows the next run which days are up to date.  A day is recomputed if its inputs (late rows, an
earlier job that ran again) or the job's settings or version have changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

import msgspec
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from penstock.domain.lake.layout import dt_of, midnight_of
from penstock.domain.lake.pipeline_settings import PipelineSettings
from penstock.domain.limits import DAY
from penstock.pipeline.frames import frame_of
from penstock.pipeline.job import PipelineJob
from penstock.pipeline.lake import SparkLake, TableFile, is_missing

FOLDER = "runs"
UNREADABLE = "cannot read "  # the note of a day that was refused because of a file


class RunStatus(StrEnum):
    DONE = "done"
    REFUSED = "refused"  # a check failed, or a file is unreadable: later jobs do not load that day


class JobRun(msgspec.Struct, frozen=True, kw_only=True):
    """One job, one day."""

    job: str
    dt: str
    status: RunStatus
    started_at: int
    ended_at: int
    inputs: str  # fingerprint of the input files and of the job's settings and version
    rows_in: dict[str, int]
    rows_out: dict[str, int]
    note: str = ""

    @property
    def is_unreadable(self) -> bool:
        return self.status is RunStatus.REFUSED and self.note.startswith(UNREADABLE)


_SCHEMA = T.StructType(
    [
        T.StructField("job", T.StringType()),
        T.StructField("dt", T.StringType()),
        T.StructField("status", T.StringType()),
        T.StructField("started_at", T.LongType()),
        T.StructField("ended_at", T.LongType()),
        T.StructField("inputs", T.StringType()),
        T.StructField("rows_in", T.MapType(T.StringType(), T.LongType())),
        T.StructField("rows_out", T.MapType(T.StringType(), T.LongType())),
        T.StructField("note", T.StringType()),
    ]
)


class RunLog:
    def __init__(self, spark: SparkSession, lake: SparkLake) -> None:
        self._spark = spark
        self._path = f"{lake.tables_folder}/{FOLDER}"

    def all(self) -> list[JobRun]:
        """Oldest first."""
        try:
            rows = self._spark.read.schema(_SCHEMA).parquet(self._path).collect()
        except AnalysisException as error:
            if not is_missing(error):
                raise
            return []
        found = [msgspec.convert(row.asDict(recursive=True), JobRun, strict=False) for row in rows]
        return sorted(found, key=lambda run: (run.ended_at, run.started_at, run.job, run.dt))

    def last(self) -> dict[tuple[str, str], JobRun]:
        """The latest run, by job and day."""
        return {(run.job, run.dt): run for run in self.all()}

    def add(self, runs: Sequence[JobRun]) -> None:
        if runs:
            frame = frame_of(self._spark, [msgspec.to_builtins(run) for run in runs], _SCHEMA)
            frame.coalesce(1).write.mode("append").parquet(self._path)


def fingerprints(
    job: PipelineJob,
    files: Mapping[str, Mapping[str, Sequence[TableFile]]],
    settings: PipelineSettings,
) -> dict[str, str]:
    """Fingerprints of all days that any input has; `files` are by table and day."""
    config = msgspec.json.encode([job.version, [getattr(settings, name) for name in job.settings]])
    days = sorted({day for by_day in files.values() for day in by_day})
    return {
        day: _digest(
            config, (f for t in job.inputs for d in window([day], job) for f in files[t].get(d, ()))
        )
        for day in days
    }


def window(days: Iterable[str], job: PipelineJob) -> list[str]:
    """These days, and the earlier ones within the job's lookback."""
    return sorted(
        {_earlier(day, by) for day in days for by in range(job.lookback_days + 1)},
    )


def _earlier(day: str, by: int) -> str:
    return dt_of(midnight_of(day) - by * DAY)


def _digest(config: bytes, files: Iterable[TableFile]) -> str:
    digest = hashlib.sha256(config)
    for file in files:
        digest.update(msgspec.json.encode(file))
    return digest.hexdigest()[:24]
