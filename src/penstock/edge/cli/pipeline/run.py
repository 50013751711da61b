"""`penstock pipeline` and `penstock pipeline run`"""

from __future__ import annotations

from argparse import Namespace

from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.parser import Parser
from penstock.edge.cli.pipeline.shared import (
    RUN_COLUMNS,
    day,
    job_settings,
    lake_flags,
    lake_of,
    loaded_settings,
    note_job,
    run_row,
    session,
)
from penstock.edge.cli.registry import Command


def _configure_run(parser: Parser) -> None:
    parser.argument("JOB", "the jobs to run, with those they need; default all", nargs="*")
    parser.flag("--from", value="DAY", text="the first day, as 2030-01-31", type=day)
    parser.flag("--to", value="DAY", text="the last day, which is computed, too", type=day)
    parser.flag("--force", text="also days of which nothing has changed")
    lake_flags(parser)


def _configure_list(parser: Parser) -> None:
    pass


def _run(args: Namespace, out: Output) -> int:
    from penstock.pipeline.session import check_installed

    check_installed()
    from penstock.pipeline.gates import GATES
    from penstock.pipeline.registry import jobs
    from penstock.pipeline.runner import DaySpan, JobRunner
    from penstock.pipeline.session import now_ms

    settings = loaded_settings(args)
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
        out.line("nothing has changed: there is nothing to compute")
    refused = [run for run in runs if run.status == "refused"]
    if refused:
        days = ", ".join(run.dt for run in refused)
        exits.tell(f"not loaded, see the tables quality and quarantine: {days}", "load_refused")
    return exits.REFUSED if refused else exits.OK


def _list(args: Namespace, out: Output) -> int:
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
    return exits.OK


COMMANDS = {
    "pipeline": Command(_list, _configure_list, examples=("penstock pipeline",)),
    "pipeline run": Command(
        _run,
        _configure_run,
        more="A day is computed again when its files have changed: rows that came late, or a job "
        "before it that was run again. Each day is replaced as a whole, so a run that was "
        "stopped is simply run again. Ends with code 1 if a check has kept a day from being "
        "loaded.",
        examples=(
            "penstock pipeline run --data ./data",
            "penstock pipeline run rollups slo --from 2030-01-01 --to 2030-01-31",
            "penstock pipeline run --lake s3a://lake/penstock --master spark://host:7077",
            "penstock pipeline run --lake /srv/lake --master sc://host:15002",
        ),
    ),
}
