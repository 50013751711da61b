"""Runs jobs one after the other, and only for days whose inputs have changed.

A run can be killed at any moment and repeated: a day is replaced as a whole and then recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

import msgspec

from penstock.domain.lake.pipeline_settings import PipelineSettings
from penstock.pipeline.job import PipelineJob
from penstock.pipeline.lake import SparkLake
from penstock.pipeline.runs import JobRun, RunLog, RunStatus, fingerprints, window

Gate = Callable[[SparkLake, Collection[str]], dict[str, str]]  # days that are refused, and why


class DaySpan(msgspec.Struct, frozen=True):
    """A range of days, both ends included."""

    from_dt: str = "0000-00-00"
    to_dt: str = "9999-99-99"

    def __contains__(self, day: object) -> bool:
        return self.from_dt <= str(day) <= self.to_dt


class JobRunner:
    """`clock`: the time for the records.  `on_job` is called with each job and its stale days."""

    def __init__(
        self,
        lake: SparkLake,
        settings: PipelineSettings,
        *,
        clock: Callable[[], int],
        gates: Mapping[str, Gate],
        on_job: Callable[[PipelineJob, int], None] = lambda job, days: None,
    ) -> None:
        self._lake = lake
        self._settings = settings
        self._clock = clock
        self._gates = gates
        self._on_job = on_job
        self._runs = RunLog(lake.spark, lake)

    def run(
        self, jobs: Iterable[PipelineJob], span: DaySpan, *, is_forced: bool = False
    ) -> list[JobRun]:
        """Compute stale days; returns the runs in order, without unchanged days."""
        self._lake.refresh()
        last = self._runs.last()
        done: list[JobRun] = []
        for job in jobs:
            refused = {d for (_, d), run in last.items() if run.status is RunStatus.REFUSED}
            now = self._state(job, span)
            stale = [
                day
                for day, inputs in now.items()
                if is_forced or _is_stale(last.get((job.name, day)), inputs)
                if day not in refused or job.name in self._gates
            ]
            self._on_job(job, len(stale))
            if stale:
                runs = self._compute(job, stale, now)
                last |= {(run.job, run.dt): run for run in runs}
                done += runs
        return done

    def stale(self, jobs: Iterable[PipelineJob], span: DaySpan) -> dict[str, list[str]]:
        """The days that each job would compute now."""
        self._lake.refresh()
        last = self._runs.last()
        return {
            job.name: [
                day
                for day, inputs in self._state(job, span).items()
                if _is_stale(last.get((job.name, day)), inputs)
            ]
            for job in jobs
        }

    def _state(self, job: PipelineJob, span: DaySpan) -> dict[str, str]:
        files = {table: self._lake.files(table) for table in job.inputs}
        found = fingerprints(job, files, self._settings)
        return {day: inputs for day, inputs in found.items() if day in span}

    def _compute(
        self, job: PipelineJob, days: list[str], inputs: Mapping[str, str]
    ) -> list[JobRun]:
        started_at = self._clock()
        tables = {table: self._lake.read(table, window(days, job)) for table in job.inputs}
        for output in job.outputs:
            self._lake.replace(output.table, output.transform(tables, self._settings), days)
        rows_in = self._lake.counts(job.inputs, days)
        rows_out = self._lake.counts([output.table.name for output in job.outputs], days)
        gate = self._gates.get(job.name)
        refused = gate(self._lake, days) if gate is not None else {}
        ended_at = self._clock()
        runs = [
            JobRun(
                job=job.name,
                dt=day,
                status=RunStatus.REFUSED if day in refused else RunStatus.DONE,
                started_at=started_at,
                ended_at=ended_at,
                inputs=inputs[day],
                rows_in=rows_in[day],
                rows_out=rows_out[day],
                note=refused.get(day, ""),
            )
            for day in days
        ]
        self._runs.add(runs)
        return runs


def _is_stale(last: JobRun | None, inputs: str) -> bool:
    return last is None or last.inputs != inputs
