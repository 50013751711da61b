"""`penstock pipeline status`"""

from __future__ import annotations

from argparse import Namespace

from penstock.domain.datetimes import moment_of
from penstock.edge.cli.kit.command import Command
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.operate.archive import settings_of
from penstock.edge.cli.pipeline.shared import (
    job_settings,
    lake_flags,
    lake_of,
    session,
)


def _run(args: Namespace, out: Output) -> None:
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
    columns = [name.replace("_", " ") for name in found[0]]
    out.records(found, columns, lambda one: tuple(one.values()))


COMMANDS = {
    "pipeline status": Command(
        _run,
        lake_flags,
        more="Pending days include those that change when a job they depend on runs.",
        examples=("penstock pipeline status --data ./data",),
    )
}
