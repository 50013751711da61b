"""`penstock promote`"""

from __future__ import annotations

from argparse import Namespace

from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.flags import loaded, store_flags
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.parser import Parser
from penstock.edge.cli.kit.progress import progress
from penstock.edge.cli.registry import Command


def configure(parser: Parser) -> None:
    parser.flag(
        "--to", value="URL", text="the PostgreSQL database, which must be empty", required=True
    )
    store_flags(parser)


def run(args: Namespace, out: Output) -> int:
    from penstock.wiring.maintenance import promote

    settings = loaded(args).settings
    with progress("Moving") as advance:
        moved = promote(settings, args.to, progress=advance)
    if out.json:
        out.record({"promoted": moved})
    else:
        out.line("everything is in PostgreSQL now; start the server with --store")
    return exits.OK


COMMANDS = {
    "promote": Command(
        run,
        configure,
        more="Stop the server first, and start it again with --store.",
        examples=("penstock promote --data ./data --to postgresql://penstock@db/penstock",),
    )
}
