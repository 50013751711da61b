"""`penstock pipeline` and `penstock pipeline run`"""

from __future__ import annotations

from argparse import Namespace

from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.command import Command, argument, flag
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.operate.archive import settings_of
from penstock.edge.cli.pipeline.shared import (
    RUN_COLUMNS,
    day,
    job_settings,
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
            job_settings(settings.pipeline),
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
}
