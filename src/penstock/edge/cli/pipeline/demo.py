"""`penstock pipeline demo`"""

from __future__ import annotations

from argparse import ArgumentTypeError, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.domain.datetimes import instant_of
from penstock.domain.lake.layout import dt_of
from penstock.domain.lake.pipeline_settings import PipelineSettings
from penstock.domain.limits import DAY
from penstock.edge.cli.kit.command import Command, argument, flag
from penstock.edge.cli.kit.flags import instant
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.progress import progress
from penstock.edge.cli.pipeline.failures import report_failures
from penstock.edge.cli.pipeline.spark_command import (
    RUN,
    day,
    lock_tables,
    runner_of,
    session,
    session_flags,
)

if TYPE_CHECKING:
    from penstock.pipeline.runs import JobRun

FOLDER = "penstock-demo"
# Storage and a price, so that the capacity table is not empty.
_EXAMPLE = PipelineSettings(cost_per_gib="0.09", storage_bytes=1024**3)


def _count(text: str) -> int:
    plain = text.replace("_", "").replace(",", "")
    if not plain.isdecimal() or int(plain) < 1:
        raise ArgumentTypeError(f"{text!r} is not a number of 1 or more")
    return int(plain)


def _run(args: Namespace, out: Output) -> int | None:
    from penstock.pipeline.session import check_installed

    check_installed()
    return report_failures(args, lambda: _make(args, out))


def _make(args: Namespace, out: Output) -> None:
    from penstock.pipeline.demo.make import make

    folder = Path(args.folder).absolute()
    first = instant_of(instant(getattr(args, "from") or "2030-01-01"))
    with progress("Generating history") as advance:
        rows = make(
            folder,
            messages=args.messages,
            days=args.days,
            first_midnight=first,
            progress=advance,
        )
    runs = [] if args.only_lake else _compute(args, folder)
    if out.json:
        last = dt_of(first + (args.days - 1) * DAY)
        out.record({"lake": str(folder), "rows": rows, "from": dt_of(first), "to": last})
        for run in runs:
            out.record(run)
    else:
        counts = ", ".join(f"{count} {table}" for table, count in rows.items())
        out.line(f"{folder}: {counts}")
        if runs:
            out.table(*RUN.table(runs))


def _compute(args: Namespace, folder: Path) -> list[JobRun]:
    from penstock.pipeline.lake import SparkLake
    from penstock.pipeline.registry import jobs
    from penstock.pipeline.runner import DaySpan

    with session(args) as spark:
        lake = SparkLake(spark, str(folder))
        with lock_tables(lake, waits=False) as may_write:
            return runner_of(lake, _EXAMPLE, may_write).run(jobs(), DaySpan())


COMMANDS = {
    "pipeline demo": Command(
        _run,
        argument(
            "FOLDER", f"a new folder for the lake; default ./{FOLDER}", nargs="?", default=FOLDER
        ),
        flag("--messages", "number of messages", value="COUNT", type=_count, default=200_000),
        flag("--days", "number of days", value="COUNT", type=_count, default=7),
        flag("--from", "the first day; default 2030-01-01", type=day),
        flag("--only-lake", "only generate the lake, compute nothing"),
        session_flags,
        more="The history has rush hours, an outage of one route, a poison kind and one that "
        "crashes workers, in the format of the archiver. The same arguments generate the same "
        "history. Then all jobs run on it.",
        examples=(
            "penstock pipeline demo",
            "penstock pipeline demo /tmp/big --messages 16000000 --days 10 --only-lake",
        ),
    )
}
