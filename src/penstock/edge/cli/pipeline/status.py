"""`penstock pipeline status`"""

from __future__ import annotations

from argparse import Namespace

from penstock.domain.datetimes import moment_of
from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.parser import Parser
from penstock.edge.cli.operate.archive import settings_of
from penstock.edge.cli.pipeline.shared import (
    job_settings,
    lake_flags,
    lake_of,
    session,
)
from penstock.edge.cli.registry import Command


def _configure(parser: Parser) -> None:
    lake_flags(parser)


def _run(args: Namespace, out: Output) -> int:
    from penstock.pipeline.session import check_installed

    check_installed()
    from penstock.pipeline.gates import GATES
    from penstock.pipeline.registry import jobs
    from penstock.pipeline.runner import DaySpan, JobRunner
    from penstock.pipeline.runs import RunLog

    settings = settings_of(args)
    with session(args) as spark:
        lake = lake_of(args, settings, spark)
        runner = JobRunner(lake, job_settings(settings.pipeline), clock=lambda: 0, gates=GATES)
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
    if out.json:
        for one in found:
            out.record(one)
    else:
        out.table(
            tuple(name.replace("_", " ") for name in found[0]), [tuple(f.values()) for f in found]
        )
    return exits.OK


COMMANDS = {
    "pipeline status": Command(
        _run,
        _configure,
        more="Pending days include those that change when a job they depend on runs.",
        examples=("penstock pipeline status --data ./data",),
    )
}
