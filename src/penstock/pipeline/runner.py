"""Runs jobs one after the other, and only for days whose inputs have changed.

A run can be killed at any moment and repeated: a day is replaced as a whole and then recorded.

A file that cannot be read refuses its day: the day is recorded with the name of the file, and the
job is computed again without it.  Replacing the file changes the day's inputs, so the next run
takes it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Set

import msgspec
from pyspark.sql import DataFrame

from penstock.domain.lake.layout import TABLES
from penstock.domain.lake.pipeline_settings import PipelineSettings
from penstock.pipeline.job import PipelineJob, TablesOfDays
from penstock.pipeline.lake import SparkLake
from penstock.pipeline.registry import all_needed_by, read_tables
from penstock.pipeline.runs import (
    UNREADABLE,
    JobRun,
    LastRuns,
    RunLog,
    RunStatus,
    fingerprints,
    window,
    written,
)
from penstock.pipeline.schemas import ComputedTable
from penstock.pipeline.spark.errors import SPARK_ERRORS, unreadable_file

Gate = Callable[[SparkLake, Collection[str]], dict[str, str]]  # days that are refused, and why
_Counted = dict[str, tuple[dict[str, int], dict[str, int]]]


class DaySpan(msgspec.Struct, frozen=True):
    """A range of days, both ends included."""

    from_dt: str = "0000-00-00"
    to_dt: str = "9999-99-99"

    def __contains__(self, day: object) -> bool:
        return self.from_dt <= str(day) <= self.to_dt


class _Refused(msgspec.Struct, frozen=True):
    """Days that a job does not read."""

    by_needed: Set[str]  # jobs: the lake's files of that day are not read
    by_itself: Set[str]

    def of(self, table: str) -> Set[str]:
        return self.by_itself | self.by_needed if table in TABLES else self.by_itself


class JobRunner:
    """`clock`: the time for the records.  `on_job` is called with each job and its stale days,
    `on_done` with their runs.

    `may_write` is called before each table is replaced, and raises to stop the run.
    """

    def __init__(
        self,
        lake: SparkLake,
        settings: PipelineSettings,
        *,
        clock: Callable[[], int],
        gates: Mapping[str, Gate],
        on_job: Callable[[PipelineJob, int], None] = lambda job, days: None,
        on_done: Callable[[list[JobRun]], None] = lambda runs: None,
        may_write: Callable[[], None] = lambda: None,
    ) -> None:
        self._lake = lake
        self._settings = settings
        self._clock = clock
        self._gates = gates
        self._on_job = on_job
        self._on_done = on_done
        self._may_write = may_write
        self._runs = RunLog(lake.spark, lake)

    def run(
        self, jobs: Iterable[PipelineJob], span: DaySpan, *, is_forced: bool = False
    ) -> list[JobRun]:
        """Compute stale days; returns the runs in order, without unchanged days."""
        self._lake.refresh()
        last = self._runs.last()
        done: list[JobRun] = []
        for job in jobs:
            refused = _refused_days(last.values(), by=all_needed_by(job))
            now = self.fingerprints(job)
            outdated = set(now) if is_forced else self._outdated(job, now, last)
            stale = [day for day in now if day in span and day in outdated - refused]
            self._on_job(job, len(stale))
            if stale:
                own = _refused_days(last.values(), by={job.name}) - set(stale)
                runs = self._compute(job, stale, now, _Refused(refused, own))
                last |= {(run.job, run.dt): run for run in runs}
                done += runs
                self._on_done(runs)
        self._lake.vacuum({table for run in done for table in run.rows_out})
        if self._runs.has_many_files():
            self._may_write()
            self._runs.merge_files()
        return done

    def stale(self, jobs: Iterable[PipelineJob], span: DaySpan) -> dict[str, list[str]]:
        """The days that each job would compute now."""
        self._lake.refresh()
        last = self._runs.last()
        return {
            job.name: sorted(
                day for day in self._outdated(job, self.fingerprints(job), last) if day in span
            )
            for job in jobs
        }

    def fingerprints(self, job: PipelineJob) -> dict[str, str]:
        """Of the inputs of every day."""
        files = {table: self._lake.files(table) for table in job.inputs}
        return fingerprints(job, files, self._settings)

    def written(self, job: PipelineJob, days: Iterable[str]) -> dict[str, str]:
        """Fingerprints of what its tables have on those days."""
        files = {output.table.name: self._lake.files(output.table.name) for output in job.outputs}
        return written(job, files, days)

    def _outdated(self, job: PipelineJob, now: Mapping[str, str], last: LastRuns) -> set[str]:
        """The days that were not computed from these inputs, or whose files are gone."""
        outputs = self.written(job, now)
        return {
            day
            for day, inputs in now.items()
            if (run := last.get((job.name, day))) is None
            or not run.is_current(inputs=inputs, outputs=outputs[day])
        }

    def _compute(
        self, job: PipelineJob, days: list[str], inputs: Mapping[str, str], refused: _Refused
    ) -> list[JobRun]:
        started_at = self._clock()
        unreadable = self._empty_files(job, days, refused)
        counted: _Counted = {}
        notes: dict[str, str] = {}
        while readable := [day for day in days if day not in unreadable]:
            skipped = _Refused(refused.by_needed, refused.by_itself | set(unreadable))
            try:
                counted = self._replace(job, readable, skipped)
                notes = self._check(job, readable)
                break
            except SPARK_ERRORS as error:
                file = unreadable_file(error)
                if file is None or file.dt in unreadable:
                    raise
                unreadable[file.dt] = f"{UNREADABLE}{file.path}: {file.reason}"
                self._lake.refresh()
        ended_at = self._clock()
        notes |= unreadable
        outputs = self.written(job, set(days) - set(notes))
        runs = [
            JobRun(
                job=job.name,
                dt=day,
                status=RunStatus.REFUSED if day in notes else RunStatus.DONE,
                started_at=started_at,
                ended_at=ended_at,
                inputs=inputs[day],
                rows_in=counted.get(day, ({}, {}))[0],
                rows_out=counted.get(day, ({}, {}))[1],
                note=notes.get(day, ""),
                outputs=outputs.get(day),
            )
            for day in sorted({*days, *unreadable} & set(inputs))
        ]
        self._runs.add(runs)
        return runs

    def _empty_files(
        self, job: PipelineJob, days: Collection[str], refused: _Refused
    ) -> dict[str, str]:
        """Files without contents, which Spark would skip without an error, by day."""
        read = {table: window(days, job, table) for table in job.inputs}
        return {
            day: f"{UNREADABLE}{files.empty}: it is empty"
            for table in job.inputs
            for day, files in self._lake.files(table).items()
            if files.empty and day in read[table] and day not in refused.of(table)
        }

    def _replace(self, job: PipelineJob, days: list[str], refused: _Refused) -> _Counted:
        """Compute those days; returns the rows in and out, by day and table."""
        frames = {
            table: self._lake.read(table, set(window(days, job, table)) - refused.of(table))
            for table in job.inputs
        }
        tables = TablesOfDays(frames, days)
        for output in job.outputs:
            self._may_write()
            self._write(output.table, output.transform(tables, self._settings), days)
        rows_in = self._lake.counts(job.inputs, days)
        rows_out = self._lake.counts([output.table.name for output in job.outputs], days)
        return {day: (rows_in[day], rows_out[day]) for day in days}

    def _write(self, table: ComputedTable, rows: DataFrame, days: list[str]) -> None:
        """Days that are the same as before stay, so that the jobs that read them need not run."""
        is_compared = table.name in read_tables() and not table.is_large
        write = self._lake.replace_changed if is_compared else self._lake.replace
        write(table, rows, days)

    def _check(self, job: PipelineJob, days: list[str]) -> dict[str, str]:
        """Days that the job itself has found to be bad, and why."""
        gate = self._gates.get(job.name)
        return gate(self._lake, days) if gate is not None else {}


def _refused_days(runs: Iterable[JobRun], *, by: Set[str]) -> set[str]:
    return {run.dt for run in runs if run.job in by and run.status is RunStatus.REFUSED}
