"""`penstock pipeline report`"""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from penstock.edge.cli.kit.command import Command, argument, flag
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.operate.archive import settings_of
from penstock.edge.cli.pipeline.shared import day, lake_flags, lake_of, session

FILE = "penstock-report.html"


def _run(args: Namespace, out: Output) -> None:
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


COMMANDS = {
    "pipeline report": Command(
        _run,
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
    )
}
