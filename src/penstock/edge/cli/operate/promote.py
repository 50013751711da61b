"""`penstock promote`"""

from __future__ import annotations

from argparse import Namespace

from penstock.edge.cli.kit.command import Command, flag
from penstock.edge.cli.kit.flags import load_settings, store_flags
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.progress import progress


def _run(args: Namespace, out: Output) -> None:
    from penstock.wiring.maintenance import promote

    settings = load_settings(args).settings
    with progress("Moving") as advance:
        moved = promote(settings, args.to, progress=advance)
    out.result({"promoted": moved}, "the store is now in PostgreSQL; start the server with --store")


COMMANDS = {
    "promote": Command(
        _run,
        flag("--to", "the PostgreSQL database, which must be empty", value="URL", required=True),
        store_flags,
        more="Stop the server first; afterwards start it with --store.",
        examples=("penstock promote --data ./data --to postgresql://penstock@db/penstock",),
    )
}
