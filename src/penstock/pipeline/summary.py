"""A run as one document, for orchestrators: what happened to each job and day."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

from penstock.domain.datetimes import moment_of

if TYPE_CHECKING:
    # Needs Spark; a summary may say that it is missing.
    from penstock.pipeline.runs import JobRun, LastRuns


class RunOutcome(StrEnum):
    DONE = "done"
    REFUSED = "refused"  # some days are not loaded; the others are computed
    FAILED = "failed"  # `code` and `message` say why; days that were computed before stay so


class DayStatus(StrEnum):
    COMPUTED = "computed"
    REFUSED = "refused"  # by this run, or by an earlier one and unchanged since
    SKIPPED = "skipped"  # unchanged since it was last computed


class DaySummary(msgspec.Struct, frozen=True):
    dt: str
    status: DayStatus
    rows_in: int
    rows_out: int
    note: str


class JobSummary(msgspec.Struct, frozen=True, kw_only=True):
    job: str
    seconds: float  # for all its days, which are computed together
    computed: int
    refused: int
    skipped: int
    days: list[DaySummary]


class RunSummary(msgspec.Struct, frozen=True, kw_only=True):
    status: RunOutcome
    code: str | None = None
    message: str | None = None
    started_at: datetime
    ended_at: datetime
    seconds: float
    jobs: list[JobSummary] = []


def jobs_of(names: Iterable[str], runs: Iterable[JobRun], last: LastRuns) -> list[JobSummary]:
    """`runs` are of this run; `last` also has those of days that it skipped."""
    now = {(run.job, run.dt): run for run in runs}
    return [
        _job(name, [(run, key in now) for key, run in sorted({**last, **now}.items())])
        for name in names
    ]


def summary_of(
    jobs: list[JobSummary],
    *,
    started_at: int,
    ended_at: int,
    code: str | None = None,
    message: str | None = None,
) -> RunSummary:
    """`code`: why the run ended early; None: it did not."""
    is_refused = any(job.refused for job in jobs)
    done = RunOutcome.REFUSED if is_refused else RunOutcome.DONE
    return RunSummary(
        status=done if code is None else RunOutcome.FAILED,
        code="load_refused" if code is None and is_refused else code,
        message=message,
        started_at=moment_of(started_at),
        ended_at=moment_of(ended_at),
        seconds=(ended_at - started_at) / 1000,
        jobs=jobs,
    )


def _job(name: str, runs: list[tuple[JobRun, bool]]) -> JobSummary:
    own = [(run, is_new) for run, is_new in runs if run.job == name]
    days = [_day(run, is_new) for run, is_new in own]
    count = {status: sum(day.status is status for day in days) for status in DayStatus}
    spans = {(run.started_at, run.ended_at) for run, is_new in own if is_new}
    return JobSummary(
        job=name,
        seconds=sum(ended_at - started_at for started_at, ended_at in spans) / 1000,
        computed=count[DayStatus.COMPUTED],
        refused=count[DayStatus.REFUSED],
        skipped=count[DayStatus.SKIPPED],
        days=days,
    )


def _day(run: JobRun, is_new: bool) -> DaySummary:
    if run.status == "refused":
        status = DayStatus.REFUSED
    else:
        status = DayStatus.COMPUTED if is_new else DayStatus.SKIPPED
    rows_in, rows_out = sum(run.rows_in.values()), sum(run.rows_out.values())
    return DaySummary(run.dt, status, rows_in, rows_out, run.note)
