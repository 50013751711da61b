"""`penstock promote`"""

from __future__ import annotations

from argparse import Namespace

from penstock.edge.cli.kit.flags import load_settings, store_flags
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

    settings = load_settings(args).settings
    with progress("Moving") as advance:
        moved = promote(settings, args.to, progress=advance)
    return out.result(
        {"promoted": moved}, "the store is now in PostgreSQL; start the server with --store"
    )


COMMANDS = {
    "promote": Command(
        run,
        configure,
        more="Stop the server first; afterwards start it with --store.",
        examples=("penstock promote --data ./data --to postgresql://penstock@db/penstock",),
    )
}
