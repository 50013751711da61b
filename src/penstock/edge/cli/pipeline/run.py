"""`penstock pipeline`: list and run the jobs; their state, a report, and the Java of Spark."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING

from penstock.domain.datetimes import moment_of
from penstock.domain.errors import InvalidRequest, TableNotFound
from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.command import Command, argument, flag
from penstock.edge.cli.kit.flags import duration, load_settings
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.stop_signal import terminated_as_interrupted
from penstock.edge.cli.kit.view import View
from penstock.edge.cli.pipeline import repeating
from penstock.edge.cli.pipeline.failures import report_failures
from penstock.edge.cli.pipeline.run_summary import RunNotes, write_summary
from penstock.edge.cli.pipeline.spark_command import (
    FROM,
    RUN,
    TO,
    SparkCommand,
    open_lake,
    open_locked_lake,
    runner_of,
)
from penstock.settings import Settings

if TYPE_CHECKING:
    from penstock.pipeline.job import PipelineJob
    from penstock.pipeline.lake import SparkLake
    from penstock.pipeline.runner import DaySpan, JobRunner
    from penstock.pipeline.runs import JobRun, LastRuns

_COMPACTED = View("table dt:day files_before files_after")
_WAIT = flag("--wait", "wait while another run is using the same tables")
_COLUMN = View("name type is_nullable:null since meaning")
_STATUS = View("job days last_day computed_at:computed_at rows to_compute refused")


def _span(args: Namespace) -> DaySpan:
    from penstock.pipeline.runner import DaySpan

    return DaySpan(getattr(args, "from") or DaySpan().from_dt, args.to or DaySpan().to_dt)


class _RunCommand(SparkCommand):
    """Writes its summary however it ends."""

    def _call(self, args: Namespace, out: Output) -> int | None:
        if args.every is not None:  # each run writes its own
            return super()._call(args, out)
        return report_failures(args, lambda: self._call_once(args, out))

    def _call_once(self, args: Namespace, out: Output) -> int | None:
        from penstock.pipeline.session import check_installed

        with terminated_as_interrupted(), write_summary(args.summary) as notes:
            check_installed()
            return _run_once(load_settings(args).settings, args, out, notes)


def _run_every(settings: Settings, args: Namespace, out: Output) -> int:
    from penstock.pipeline.registry import jobs

    jobs(args.job)  # an unknown job is reported now and not by each run
    repeating.check(args)
    return repeating.run_every(args)


def _run_once(settings: Settings, args: Namespace, out: Output, notes: RunNotes) -> int:
    from penstock.pipeline.registry import jobs

    wanted = jobs(args.job)
    with open_locked_lake(args, settings) as (lake, may_write):
        runner = runner_of(lake, settings.pipeline, may_write, notes.add)
        runs = runner.run(wanted, _span(args), is_forced=args.force)
        last = _last_runs(lake, runner, wanted, _span(args))
    notes.finish(wanted, last)
    own = {(run.job, run.dt) for run in runs}
    standing = [run for key, run in last.items() if run.status == "refused" and key not in own]
    found = [*standing, *runs]
    if out.json or found:
        out.records(found, RUN)
    else:
        out.line("nothing to compute: no day has changed")
    refused = [run for run in found if run.status == "refused"]
    if refused:
        exits.report(_refusal(refused), "load_refused")
    return exits.REFUSED if refused else exits.OK


def _last_runs(
    lake: SparkLake, runner: JobRunner, wanted: Sequence[PipelineJob], span: DaySpan
) -> LastRuns:
    """The latest run of each day that the lake has, in the order of the jobs."""
    from penstock.pipeline.runs import RunLog

    last = RunLog(lake.spark, lake).last()
    keys = [(job.name, dt) for job in wanted for dt in runner.fingerprints(job) if dt in span]
    return {key: last[key] for key in keys if key in last}


def _refusal(refused: list[JobRun]) -> str:
    """One line for all days that are not loaded."""
    files = list(dict.fromkeys(f"{run.dt}: {run.note}" for run in refused if run.is_unreadable))
    others = sorted({run.dt for run in refused if not run.is_unreadable})
    parts = []
    if files:
        parts.append(f"{'; '.join(files)}; replace the file and run again")
    if others:
        days = ", ".join(others)
        parts.append(f"see the tables quality and quarantine; days not loaded: {days}")
    return "; ".join(parts)


def _list(args: Namespace, out: Output) -> None:
    from penstock.pipeline.session import check_installed

    check_installed()
    from penstock.pipeline.registry import jobs

    found = jobs()
    if out.json:
        for job in found:
            tables = {o.table.name: o.table.meaning for o in job.outputs}
            out.record({"job": job.name, "summary": job.summary, "tables": tables})
    else:
        rows = [(job.name, [o.table.name for o in job.outputs], job.summary) for job in found]
        out.table(("job", "tables", "what it computes"), rows)


def _schema(args: Namespace, out: Output) -> None:
    from penstock.pipeline.session import check_installed

    check_installed()
    from penstock.pipeline.contract import contract

    made = contract()
    if args.table is None and out.json:
        out.record(made)
        return
    tables = [t for t in (*made.lake, *made.computed) if args.table in (None, t.name)]
    if not tables:
        raise TableNotFound(args.table)
    for table in tables:
        fields = [("table", table.name), ("version", table.version), ("meaning", table.meaning)]
        out.show(table, fields, _COLUMN.table(table.columns))


def _status(settings: Settings, args: Namespace, out: Output) -> None:
    from penstock.pipeline.registry import jobs
    from penstock.pipeline.runner import DaySpan
    from penstock.pipeline.runs import RunLog

    with open_lake(args, settings) as lake:
        stale = runner_of(lake, settings.pipeline).stale(jobs(), DaySpan())
        last = RunLog(lake.spark, lake).last()
    found = []
    for name, days in stale.items():
        runs = [run for (job, _), run in last.items() if job == name]
        found.append(
            {
                "job": name,
                "days": len(runs),
                "last_day": max((run.dt for run in runs), default=None),
                "computed_at": moment_of(max(run.ended_at for run in runs)) if runs else None,
                "rows": sum(sum(run.rows_out.values()) for run in runs),
                "to_compute": days,
                "refused": sorted(run.dt for run in runs if run.status == "refused"),
            }
        )
    out.records(found, _STATUS)


def _compact(settings: Settings, args: Namespace, out: Output) -> None:
    from penstock.pipeline.files.compaction import compact
    from penstock.pipeline.session import now_ms
    from penstock.pipeline.spark.progress import is_remote

    with open_locked_lake(args, settings) as (lake, may_write):
        if is_remote(lake.spark):
            raise InvalidRequest("Spark Connect cannot remove files; use another --master")
        runner = runner_of(lake, settings.pipeline)
        done = compact(lake, runner, now=now_ms(lake.spark), may_write=may_write)
    if out.json or done:
        out.records(done, _COMPACTED)
    else:
        out.line("nothing to do: no day has small files")


FILE = "penstock-report.html"


def _report(settings: Settings, args: Namespace, out: Output) -> None:
    from penstock.pipeline.report.contents import report

    with open_lake(args, settings) as lake:
        page = report(lake, _span(args))
    path = Path(args.file).absolute()
    path.write_text(page, encoding="utf-8")
    out.result({"file": str(path), "bytes": len(page.encode())}, str(path))


def _java(args: Namespace, out: Output) -> None:
    from penstock.pipeline.spark.java import java_home

    home = java_home(os.environ) or _on_path()
    out.result({"java_home": home}, home)


def _on_path() -> str:
    java = which("java")
    if java is None:
        raise InvalidRequest("java was not found on the PATH")
    return str(Path(java).resolve().parent.parent)


COMMANDS = {
    "pipeline": Command(_list, examples=("penstock pipeline",)),
    "pipeline run": _RunCommand(
        _run_every,
        argument("JOB", "jobs to run, with the jobs they depend on; default: all", nargs="*"),
        FROM,
        TO,
        flag("--force", "also compute days that have not changed"),
        _WAIT,
        flag(
            "--summary",
            "write a JSON summary of each job and day to FILE, even if the run fails",
            value="FILE",
        ),
        flag(
            repeating.EVERY,
            "repeat the run at this interval until SIGTERM; failed runs are reported, and "
            "intervals during a run are skipped",
            type=duration,
        ),
        more="A day is computed again when its files have changed: by late rows, or by a new run "
        "of a job that it depends on. Each day is replaced as a whole, so an interrupted run can "
        "simply be repeated. Exits with code 1 if a check rejected a day, if a file cannot be read "
        "or if another run is using the same tables.",
        examples=(
            "penstock pipeline run --data ./data",
            "penstock pipeline run rollups slo --from 2030-01-01 --to 2030-01-31",
            "penstock pipeline run --lake s3a://lake/penstock --master spark://host:7077",
            "penstock pipeline run --lake /srv/lake --master sc://host:15002",
            "penstock pipeline run --data ./data --every 1h",
            "penstock pipeline run --data ./data --summary run.json",
        ),
    ),
    "pipeline schema": Command(
        _schema,
        argument("TABLE", "only this table; default: all", nargs="?"),
        more="With --json, the contract of all tables is one document, as in docs/tables.json.",
        examples=("penstock pipeline schema history", "penstock pipeline schema --json"),
    ),
    "pipeline status": SparkCommand(
        _status,
        more="Pending days include those that change when a job they depend on runs.",
        examples=("penstock pipeline status --data ./data",),
    ),
    "pipeline compact": SparkCommand(
        _compact,
        _WAIT,
        more="Each day is replaced as a whole, and nothing is computed again because of it. Also "
        "reduces the log of runs to the latest run of each job and day. The lake is not changed.",
        examples=("penstock pipeline compact --data ./data",),
    ),
    "pipeline report": SparkCommand(
        _report,
        argument("FILE", f"the file to write; default ./{FILE}", nargs="?", default=FILE),
        FROM,
        TO,
        more="Writes one self-contained HTML file with latency, backlog, targets, circuits, "
        "replays and capacity. It shows what the jobs have computed: run them first.",
        examples=(
            "penstock pipeline report --data ./data",
            "penstock pipeline report week.html --lake ./penstock-demo --from 2030-01-01",
        ),
    ),
    "pipeline java": Command(
        _java,
        more="For Spark tools that are started without Penstock: spark-submit, pyspark, a Spark "
        "Connect server. `penstock pipeline run` finds it by itself.",
        examples=(
            "penstock pipeline java",
            'JAVA_HOME="$(penstock pipeline java)" spark-submit …',
        ),
    ),
}
