"""A lake of a test's own: files in it as the archiver writes them, and jobs run on it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from penstock.domain.lake import layout as lake
from penstock.domain.lake.layout import LakeTable, Range
from penstock.domain.lake.pipeline_settings import PipelineSettings
from penstock.domain.limits import MINUTE
from penstock.outbound.lake_files import schema_of
from penstock.pipeline.gates import GATES
from penstock.pipeline.lake import SparkLake
from penstock.pipeline.registry import computed_tables, jobs
from penstock.pipeline.runner import DaySpan, JobRunner
from penstock.pipeline.runs import JobRun, RunLog
from tests.pipeline.rows import rows
from tests.runtime.archiver.driver import rows_of

# For tests that run all jobs: every queue and day is replayed under every candidate.
FEW_CANDIDATES = PipelineSettings(
    backtest_goals_s=(60,),
    backtest_samples=(3,),
    backtest_most_up=(5,),
    backtest_interval_ms=10 * MINUTE,
)


class LakeDriver:
    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        self.lake = SparkLake(spark, str(folder))
        self.now = 1_000
        self._numbers: dict[str, int] = {}

    def archive(self, table: LakeTable, *given: dict[str, Any]) -> None:
        """Add rows to the lake: one file for each day, with the numbers that follow."""
        taken = self._numbers.get(table.name, 0)
        made = [r | _numbered(table, taken + n) | g for n, (r, g) in _paired(table, given)]
        self._numbers[table.name] = taken + len(made)
        for dt in sorted({r["dt"] for r in made}):
            self._write(table, dt, [r for r in made if r["dt"] == dt])

    def copy_to(self, folder: Path) -> LakeDriver:
        """The same lake and tables in another folder, for a test that changes them."""
        shutil.copytree(self.folder, folder)
        copy = LakeDriver(self.spark, folder)
        copy.now, copy._numbers = self.now, dict(self._numbers)
        return copy

    def run(
        self,
        *names: str,
        settings: PipelineSettings | None = None,
        span: DaySpan | None = None,
        is_forced: bool = False,
    ) -> list[JobRun]:
        return self.runner(settings).run(jobs(names), span or DaySpan(), is_forced=is_forced)

    def runner(self, settings: PipelineSettings | None = None) -> JobRunner:
        given = settings or PipelineSettings()
        return JobRunner(self.lake, given, clock=lambda: self.tick(), gates=GATES)

    def ran(self, *names: str, **more: Any) -> list[tuple[str, str]]:
        """Which job has computed which day."""
        return [(run.job, run.dt) for run in self.run(*names, **more)]

    def read(self, table: str) -> DataFrame:
        return self.lake.read(table)

    def rows(self, table: str) -> list[dict[str, Any]]:
        """The rows of a table, without Spark, which takes longer."""
        return rows_of(Path(self.lake.tables_folder), computed_tables()[table])

    def runs(self) -> list[JobRun]:
        return RunLog(self.spark, self.lake).all()

    def tick(self) -> int:
        self.now += 1
        return self.now

    def _write(self, table: LakeTable, dt: str, made: list[dict[str, Any]]) -> None:
        schema = schema_of(table)
        numbers = [r[table.number] for r in made]
        name = lake.file_name(table, Range(min(numbers), max(numbers)))
        path = self.folder / lake.folder(table, dt) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        plain = [{k: v for k, v in r.items() if k in schema.names} for r in made]
        pq.write_table(pa.Table.from_pylist(plain, schema), path, compression="zstd")


def _numbered(table: LakeTable, number: int) -> dict[str, int]:
    names = {table.number, "message_no"} & {column.name for column in table.columns}
    return dict.fromkeys(names, number)


def _paired(
    table: LakeTable, given: tuple[dict[str, Any], ...]
) -> list[tuple[int, tuple[dict[str, Any], dict[str, Any]]]]:
    return list(enumerate(zip(rows(table, *given), given, strict=True), start=1))
