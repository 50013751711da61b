"""The log of runs: which job computed which day from which inputs, and how many rows.

It shows the next run which days are up to date.  A day is recomputed if its inputs (late rows, an
earlier job that ran again) or the job's settings or version have changed, and if the files that the
job wrote are no longer those of its tables: they were deleted or damaged, a stream has replaced
them, or a kill has lost them (Spark deletes the old files of a day before it names the new ones).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

import msgspec
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from penstock.domain.lake.layout import dt_of, midnight_of
from penstock.domain.lake.pipeline_settings import PipelineSettings
from penstock.domain.limits import DAY
from penstock.pipeline.files.listing import DayFiles, HadoopFiles, read_folders
from penstock.pipeline.job import PipelineJob
from penstock.pipeline.lake import SparkLake
from penstock.pipeline.spark.frames import frame_of
from penstock.pipeline.spark.progress import is_remote

FOLDER = "runs"
MOST_FILES = 100  # each job of a run writes one; a run merges them if there are more
FilesOfTables = Mapping[str, Mapping[str, DayFiles]]  # by table and day
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
    outputs: str | None = None  # fingerprint of the files it wrote; None: not known

    @property
    def is_unreadable(self) -> bool:
        return self.status is RunStatus.REFUSED and self.note.startswith(UNREADABLE)

    def is_current(self, *, inputs: str, outputs: str) -> bool:
        return self.inputs == inputs and self.outputs in (None, outputs)


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
        T.StructField("outputs", T.StringType()),
    ]
)


LastRuns = Mapping[tuple[str, str], JobRun]  # by job and day


class RunLog:
    def __init__(self, spark: SparkSession, lake: SparkLake) -> None:
        self._spark = spark
        self._path = f"{lake.tables_folder}/{FOLDER}"

    def all(self) -> list[JobRun]:
        """Oldest first."""
        found = map(_run_of, self._read().collect())
        return sorted(found, key=lambda run: (run.ended_at, run.started_at, run.job, run.dt))

    def last(self) -> dict[tuple[str, str], JobRun]:
        """The latest run, by job and day; only these are sent to the driver."""
        run = F.max_by(F.struct(*_SCHEMA.names), F.struct("ended_at", "started_at"))
        rows = self._read().groupBy("job", "dt").agg(run.alias("run")).select("run.*").collect()
        return {(run.job, run.dt): run for run in map(_run_of, rows)}

    def add(self, runs: Sequence[JobRun]) -> None:
        if runs:
            frame = frame_of(self._spark, [msgspec.to_builtins(run) for run in runs], _SCHEMA)
            frame.coalesce(1).write.mode("append").parquet(self._path)

    def compact(self) -> int:
        """Put the latest run of each job and day into one file; returns how many it replaces.

        The new file comes first: after a kill in between, some runs are there twice.
        """
        files = HadoopFiles(self._spark, self._path)
        before = files.names()
        if len(before) < 2:
            return 0
        self.add(sorted(self.last().values(), key=lambda run: (run.ended_at, run.job, run.dt)))
        files.remove(before)
        return len(before)

    def has_many_files(self) -> bool:
        if is_remote(self._spark):
            return False
        return len(HadoopFiles(self._spark, self._path).names()) > MOST_FILES

    def merge_files(self) -> None:
        """Put all runs into one file; the new file comes first, as in `compact`."""
        files = HadoopFiles(self._spark, self._path)
        before = files.names()
        runs = self._read().dropDuplicates(["job", "dt", "started_at", "ended_at"])
        runs.coalesce(1).write.mode("append").parquet(self._path)
        files.remove(before)

    def _read(self) -> DataFrame:
        return read_folders(self._spark, [self._path], _SCHEMA, base=self._path)


def _run_of(row: Row) -> JobRun:
    return msgspec.convert(row.asDict(recursive=True), JobRun, strict=False)


def fingerprints(
    job: PipelineJob,
    files: FilesOfTables,
    settings: PipelineSettings,
) -> dict[str, str]:
    """Fingerprints of all days that any input has."""
    config = msgspec.json.encode([job.version, [getattr(settings, name) for name in job.settings]])
    days = sorted({day for by_day in files.values() for day in by_day})
    return {
        day: _digest(config, (files[t].get(d) for t in job.inputs for d in window([day], job, t)))
        for day in days
    }


def written(job: PipelineJob, files: FilesOfTables, days: Iterable[str]) -> dict[str, str]:
    """Fingerprints of what the tables of the job have on those days."""
    names = [output.table.name for output in job.outputs]
    return {day: _digest(b"", (files[name].get(day) for name in names)) for day in days}


def window(days: Iterable[str], job: PipelineJob, table: str) -> list[str]:
    """These days, and the earlier ones whose rows in this table matter to the job."""
    back = 0 if table in job.only_own_day else job.lookback_days
    return sorted({_earlier(day, by) for day in days for by in range(back + 1)})


def _earlier(day: str, by: int) -> str:
    return dt_of(midnight_of(day) - by * DAY)


def _digest(config: bytes, files: Iterable[DayFiles | None]) -> str:
    digest = hashlib.sha256(config)
    for of_day in files:
        digest.update(b" " if of_day is None else of_day.digest.encode())
    return digest.hexdigest()[:24]
