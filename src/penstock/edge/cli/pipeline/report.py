"""`penstock pipeline report`"""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.parser import Parser
from penstock.edge.cli.pipeline.shared import day, lake_flags, lake_of, loaded_settings, session
from penstock.edge.cli.registry import Command

FILE = "penstock-report.html"


def _configure(parser: Parser) -> None:
    parser.argument("FILE", f"where to write it; default ./{FILE}", nargs="?", default=FILE)
    parser.flag("--from", value="DAY", text="the first day, as 2030-01-31", type=day)
    parser.flag("--to", value="DAY", text="the last day, which is shown, too", type=day)
    lake_flags(parser)


def _run(args: Namespace, out: Output) -> int:
    from penstock.pipeline.session import check_installed

    check_installed()
    from penstock.pipeline.report.contents import report
    from penstock.pipeline.runner import DaySpan

    settings = loaded_settings(args)
    span = DaySpan(getattr(args, "from") or DaySpan().from_dt, args.to or DaySpan().to_dt)
    with session(args) as spark:
        page = report(lake_of(args, settings, spark), span)
    path = Path(args.file).absolute()
    path.write_text(page, encoding="utf-8")
    if out.json:
        out.record({"file": str(path), "bytes": len(page.encode())})
    else:
        out.line(str(path))
    return exits.OK


COMMANDS = {
    "pipeline report": Command(
        _run,
        _configure,
        more="One HTML file with latency, backlog, targets, circuits, replays and capacity; it "
        "needs no other host and can be sent by mail. It shows what the jobs have computed: run "
        "them first.",
        examples=(
            "penstock pipeline report --data ./data",
            "penstock pipeline report week.html --lake ./penstock-demo --from 2030-01-01",
        ),
    )
}
