"""Merges small files of the computed tables, day by day, and the log of runs into one file.

A day is replaced as a whole, under the lock of runs.  Its rows stay the same, so the jobs that have
read or written them are recorded with the new files, and nothing is computed again.  (After a kill
in between, they compute these days again.)  The lake is left alone: the archiver numbers its files,
and streams know them by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from penstock.pipeline.job import PipelineJob
from penstock.pipeline.lake import SparkLake
from penstock.pipeline.registry import computed_tables, jobs
from penstock.pipeline.runner import JobRunner
from penstock.pipeline.runs import FOLDER, JobRun, LastRuns, RunLog

MIB = 1024**2
FULL = 128 * MIB  # size of a file that is large enough


class CompactedDay(msgspec.Struct, frozen=True):
    table: str
    dt: str  # "" for the log of runs, which is not by day
    files_before: int
    files_after: int


def compact(
    lake: SparkLake,
    runner: JobRunner,
    *,
    now: int,
    may_write: Callable[[], None],
    on_day: Callable[[CompactedDay], None] = lambda day: None,
) -> list[CompactedDay]:
    lake.refresh()
    runs = RunLog(lake.spark, lake)
    current = _current(runner, runs.last())
    done: list[CompactedDay] = []
    for table in computed_tables().values():
        for day, files in lake.files(table.name).items():
            wanted = -(-files.size // FULL) or 1
            if files.count > wanted:
                may_write()
                lake.rewrite(table, day, files=wanted)
                done.append(CompactedDay(table.name, day, files.count, wanted))
                on_day(done[-1])
    if done:
        runs.add(_with_new_files(runner, current, now=now))
    may_write()
    if (files_before := runs.compact()) > 1:
        done.append(CompactedDay(FOLDER, "", files_before, 1))
    return done


def _current(runner: JobRunner, last: LastRuns) -> LastRuns:
    """The runs whose files have not changed since."""
    return {
        (job.name, day): run
        for job, day, inputs, outputs in _job_days(runner)
        if (run := last.get((job.name, day))) is not None
        and run.is_current(inputs=inputs, outputs=outputs)
    }


def _with_new_files(runner: JobRunner, current: LastRuns, *, now: int) -> list[JobRun]:
    """These runs, with the present files as what they have read and written."""
    return [
        msgspec.structs.replace(run, inputs=inputs, outputs=run.outputs and outputs, ended_at=now)
        for job, day, inputs, outputs in _job_days(runner)
        if (run := current.get((job.name, day))) is not None
        and not run.is_current(inputs=inputs, outputs=outputs)
    ]


def _job_days(runner: JobRunner) -> Iterator[tuple[PipelineJob, str, str, str]]:
    """Each job and day, with the fingerprints of its files."""
    for job in jobs():
        inputs = runner.fingerprints(job)
        outputs = runner.written(job, inputs)
        yield from ((job, day, inputs[day], outputs[day]) for day in inputs)
