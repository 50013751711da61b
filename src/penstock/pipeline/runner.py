"""Runs jobs one after the other: what has changed since they were last run, day by day, no more.

A run can be killed at any moment and run again: a day is replaced as a whole, and noted afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

import msgspec

from penstock.pipeline.job import Job
from penstock.pipeline.lake import Lake
from penstock.pipeline.runs import Run, Runs, Status, fingerprints, window
from penstock.pipeline.settings import JobSettings

Gate = Callable[[Lake, Collection[str]], dict[str, str]]  # days that are refused, and why


class Span(msgspec.Struct, frozen=True):
    """Days, both ends included."""

    from_dt: str = "0000-00-00"
    to_dt: str = "9999-99-99"

    def __contains__(self, day: object) -> bool:
        return self.from_dt <= str(day) <= self.to_dt


class Runner:
    """`clock` gives the instants of the records; `told` hears which job computes how many days."""

    def __init__(
        self,
        lake: Lake,
        settings: JobSettings,
        *,
        clock: Callable[[], int],
        gates: Mapping[str, Gate],
        told: Callable[[Job, int], None] = lambda job, days: None,
    ) -> None:
        self._lake = lake
        self._settings = settings
        self._clock = clock
        self._gates = gates
        self._told = told
        self._runs = Runs(lake.spark, lake)

    def run(self, jobs: Iterable[Job], span: Span, *, is_forced: bool = False) -> list[Run]:
        """What was computed, in order; days that have not changed are not in it."""
        self._lake.refresh()
        last = self._runs.last()
        done: list[Run] = []
        for job in jobs:
            refused = {d for (_, d), run in last.items() if run.status is Status.REFUSED}
            now = self._state(job, span)
            stale = [
                day
                for day, inputs in now.items()
                if is_forced or _is_stale(last.get((job.name, day)), inputs)
                if day not in refused or job.name in self._gates
            ]
            self._told(job, len(stale))
            if stale:
                runs = self._compute(job, stale, now)
                last |= {(run.job, run.dt): run for run in runs}
                done += runs
        return done

    def stale(self, jobs: Iterable[Job], span: Span) -> dict[str, list[str]]:
        """The days that each job would compute, by what is there now."""
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

    def _state(self, job: Job, span: Span) -> dict[str, str]:
        files = {table: self._lake.files(table) for table in job.inputs}
        found = fingerprints(job, files, self._settings)
        return {day: inputs for day, inputs in found.items() if day in span}

    def _compute(self, job: Job, days: list[str], inputs: Mapping[str, str]) -> list[Run]:
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
            Run(
                job=job.name,
                dt=day,
                status=Status.REFUSED if day in refused else Status.DONE,
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


def _is_stale(last: Run | None, inputs: str) -> bool:
    return last is None or last.inputs != inputs
