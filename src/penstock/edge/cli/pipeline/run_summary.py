"""The summary file of a run, for orchestrators; it is written however the run ends."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from penstock.domain.errors import InvalidRequest
from penstock.edge.cli.kit import exits
from penstock.edge.cli.pipeline.failures import Failure, explain_failure

if TYPE_CHECKING:
    from penstock.pipeline.job import PipelineJob
    from penstock.pipeline.runs import JobRun, LastRuns
    from penstock.pipeline.summary import JobSummary


class RunNotes:
    """What a run has done so far: all that is known if it fails."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._runs: list[JobRun] = []
        self._last: LastRuns = {}

    def add(self, runs: Sequence[JobRun]) -> None:
        """Note the days that a job has computed or refused."""
        self._names += dict.fromkeys(run.job for run in runs)
        self._runs += runs

    def finish(self, jobs: Sequence[PipelineJob], last: LastRuns) -> None:
        """Note the latest run of each day, also of days that this run skipped."""
        self._names, self._last = [job.name for job in jobs], last

    def summarize(self) -> list[JobSummary]:
        from penstock.pipeline.summary import jobs_of

        return jobs_of(self._names, self._runs, self._last)


@contextmanager
def write_summary(file: str | None) -> Iterator[RunNotes]:
    """Write the file at the end of the block, even if it raises.

    Raises InvalidRequest at once if the file cannot be written.
    """
    notes = RunNotes()
    if file is None:
        yield notes
        return
    from penstock.pipeline.summary import summary_of
    from penstock.wiring.broker import wall_clock

    path = Path(file)
    _check_writable(path)
    clock = wall_clock()
    started_at = clock.now()

    def write(failure: Failure | None = None) -> None:
        summary = summary_of(
            notes.summarize(),
            started_at=started_at,
            ended_at=clock.now(),
            code=None if failure is None else failure.code,
            message=None if failure is None else failure.text,
        )
        _replace(path, msgspec.json.format(msgspec.json.encode(summary)) + b"\n")

    try:
        yield notes
    except BaseException as error:
        try:
            write(explain_failure(error))
        except OSError as problem:  # the error of the run matters more
            exits.note(f"the summary was not written: {exits.system_text(problem)}")
        raise
    write()


def _check_writable(path: Path) -> None:
    try:
        if path.is_dir():
            raise IsADirectoryError(None, "Is a directory", str(path))
        _fresh(path).touch()
    except OSError as error:
        raise InvalidRequest(f"cannot write the summary {path}: {error.strerror}") from None
    with suppress(OSError):
        _fresh(path).unlink()


def _replace(path: Path, text: bytes) -> None:
    """A reader finds the old file or the whole new one."""
    _fresh(path).write_bytes(text)
    os.replace(_fresh(path), path)


def _fresh(path: Path) -> Path:
    return path.with_name(f".{path.name}.new")
