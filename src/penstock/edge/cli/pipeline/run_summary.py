"""The summary file of a run, for orchestrators; it is written however the run ends."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from penstock.domain.errors import PenstockError

if TYPE_CHECKING:
    from penstock.pipeline.job import PipelineJob
    from penstock.pipeline.lake import SparkLake
    from penstock.pipeline.runner import DaySpan
    from penstock.pipeline.runs import JobRun
    from penstock.pipeline.summary import JobSummary

NoteRuns = Callable[["SparkLake", "Sequence[PipelineJob]", "Sequence[JobRun]", "DaySpan"], None]


@contextmanager
def summarized(file: str | None) -> Iterator[NoteRuns]:
    """Yields a function to call with the runs; the file is written at the end of the block."""
    if file is None:
        yield lambda lake, jobs, runs, span: None
        return
    from penstock.pipeline.runs import RunLog
    from penstock.pipeline.summary import jobs_of, summary_of
    from penstock.wiring.broker import wall_clock

    clock = wall_clock()
    started_at = clock.now()
    found: list[JobSummary] = []

    def note_runs(
        lake: SparkLake, jobs: Sequence[PipelineJob], runs: Sequence[JobRun], span: DaySpan
    ) -> None:
        last = {key: run for key, run in RunLog(lake.spark, lake).last().items() if run.dt in span}
        found.extend(jobs_of([job.name for job in jobs], runs, last))

    def write(code: str | None = None, message: str | None = None) -> None:
        summary = summary_of(
            found, started_at=started_at, ended_at=clock.now(), code=code, message=message
        )
        _replace(Path(file), msgspec.json.format(msgspec.json.encode(summary)) + b"\n")

    try:
        yield note_runs
    except BaseException as error:
        write(*_explain(error))
        raise
    write()


def _explain(error: BaseException) -> tuple[str, str]:
    """A stable code, and one line."""
    from penstock.pipeline.spark_errors import SPARK_ERRORS, explain
    from penstock.pipeline.stopped import PipelineStopped

    if isinstance(error, PipelineStopped | PenstockError):
        return error.code, str(error)
    if isinstance(error, SPARK_ERRORS):
        found = explain(error)
        return found.code, found.text
    if isinstance(error, KeyboardInterrupt):
        return "interrupted", "the run was interrupted"
    return "system", str(error)


def _replace(path: Path, text: bytes) -> None:
    """A reader finds the old file or the whole new one."""
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_bytes(text)
    os.replace(fresh, path)
