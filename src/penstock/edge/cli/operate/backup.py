"""`penstock backup`"""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.flags import loaded, store_flags
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.parser import Parser
from penstock.edge.cli.kit.progress import progress
from penstock.edge.cli.registry import Command

MIB = 1024 * 1024


def configure(parser: Parser) -> None:
    parser.argument("TARGET", "the file to write, or a folder to put it in")
    parser.flag("--force", text="replace the file if it exists")
    store_flags(parser)


def run(args: Namespace, out: Output) -> int:
    from penstock.wiring.maintenance import backup

    settings = loaded(args).settings
    with progress("Copying") as advance:
        copied = backup(settings, Path(args.target), replace=args.force, progress=advance)
    if out.json:
        out.record(copied)
    else:
        out.line(f"{copied.path} ({copied.size / MIB:.1f} MiB, checked)")
    return exits.OK


COMMANDS = {
    "backup": Command(
        run,
        configure,
        more="The copy is complete at one moment, checked and synced before it gets its name. To "
        "restore it, stop the server, remove penstock.db-wal and penstock.db-shm from the data "
        "folder, and put the copy in the place of penstock.db.",
        examples=(
            "penstock backup /backups --data ./data",
            "penstock backup yesterday.db --force",
        ),
    )
}
