"""`penstock pipeline`: list and run the jobs; their state, a report, and the Java of Spark."""

from __future__ import annotations

import os
from argparse import Namespace
from pathlib import Path
from shutil import which

from penstock.domain.datetimes import moment_of
from penstock.domain.errors import InvalidRequest
from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.command import Command, argument, flag
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.operate.archive import settings_of
from penstock.edge.cli.pipeline.shared import (
    RUN_COLUMNS,
    day,
    lake_flags,
    lake_of,
    note_job,
    run_row,
    session,
)


def _run(args: Namespace, out: Output) -> int:
    from penstock.pipeline.session import check_installed

    check_installed()
    from penstock.pipeline.gates import GATES
    from penstock.pipeline.registry import jobs
    from penstock.pipeline.runner import DaySpan, JobRunner
    from penstock.pipeline.session import now_ms

    settings = settings_of(args)
    wanted = jobs(args.job)
    first, last = getattr(args, "from"), args.to
    span = DaySpan(first or DaySpan().from_dt, last or DaySpan().to_dt)
    with session(args) as spark:
        runner = JobRunner(
            lake_of(args, settings, spark),
            settings.pipeline,
            clock=lambda: now_ms(spark),
            gates=GATES,
            on_job=note_job,
        )
        runs = runner.run(wanted, span, is_forced=args.force)
    if out.json:
        for run in runs:
            out.record(run)
    elif runs:
        out.table(RUN_COLUMNS, map(run_row, runs))
    else:
        out.line("nothing to compute: no day has changed")
    refused = [run for run in runs if run.status == "refused"]
    if refused:
        days = ", ".join(run.dt for run in refused)
        exits.report(
            f"see the tables quality and quarantine; days not loaded: {days}", "load_refused"
        )
    return exits.REFUSED if refused else exits.OK


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


def _status(args: Namespace, out: Output) -> None:
    from penstock.pipeline.session import check_installed

    check_installed()
    from penstock.pipeline.gates import GATES
    from penstock.pipeline.registry import jobs
    from penstock.pipeline.runner import DaySpan, JobRunner
    from penstock.pipeline.runs import RunLog

    settings = settings_of(args)
    with session(args) as spark:
        lake = lake_of(args, settings, spark)
        runner = JobRunner(lake, settings.pipeline, clock=lambda: 0, gates=GATES)
        stale = runner.stale(jobs(), DaySpan())
        last = RunLog(spark, lake).last()
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
    columns = [name.replace("_", " ") for name in found[0]]
    out.records(found, columns, lambda one: tuple(one.values()))


FILE = "penstock-report.html"


def _report(args: Namespace, out: Output) -> None:
    from penstock.pipeline.session import check_installed

    check_installed()
    from penstock.pipeline.report.contents import report
    from penstock.pipeline.runner import DaySpan

    settings = settings_of(args)
    span = DaySpan(getattr(args, "from") or DaySpan().from_dt, args.to or DaySpan().to_dt)
    with session(args) as spark:
        page = report(lake_of(args, settings, spark), span)
    path = Path(args.file).absolute()
    path.write_text(page, encoding="utf-8")
    out.result({"file": str(path), "bytes": len(page.encode())}, str(path))


def _java(args: Namespace, out: Output) -> None:
    from penstock.pipeline.java import java_home

    home = java_home(os.environ) or _on_path()
    out.result({"java_home": home}, home)


def _on_path() -> str:
    java = which("java")
    if java is None:
        raise InvalidRequest("java was not found on the PATH")
    return str(Path(java).resolve().parent.parent)


COMMANDS = {
    "pipeline": Command(_list, examples=("penstock pipeline",)),
    "pipeline run": Command(
        _run,
        argument("JOB", "jobs to run, with the jobs they depend on; default: all", nargs="*"),
        flag("--from", "first day, such as 2030-01-31", type=day),
        flag("--to", "last day, inclusive", type=day),
        flag("--force", "also compute days that have not changed"),
        lake_flags,
        more="A day is computed again when its files have changed: by late rows, or by a new run "
        "of a job that it depends on. Each day is replaced as a whole, so an interrupted run can "
        "simply be repeated. Exits with code 1 if a check rejected a day.",
        examples=(
            "penstock pipeline run --data ./data",
            "penstock pipeline run rollups slo --from 2030-01-01 --to 2030-01-31",
            "penstock pipeline run --lake s3a://lake/penstock --master spark://host:7077",
            "penstock pipeline run --lake /srv/lake --master sc://host:15002",
        ),
    ),
    "pipeline status": Command(
        _status,
        lake_flags,
        more="Pending days include those that change when a job they depend on runs.",
        examples=("penstock pipeline status --data ./data",),
    ),
    "pipeline report": Command(
        _report,
        argument("FILE", f"the file to write; default ./{FILE}", nargs="?", default=FILE),
        flag("--from", "first day, such as 2030-01-31", type=day),
        flag("--to", "last day, inclusive", type=day),
        lake_flags,
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
