"""`penstock backup`"""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from penstock.edge.cli.kit.flags import load_settings, store_flags
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.parser import Parser
from penstock.edge.cli.kit.progress import progress
from penstock.edge.cli.registry import Command

MIB = 1024 * 1024


def configure(parser: Parser) -> None:
    parser.argument("TARGET", "the file to write, or a folder to write it to")
    parser.flag("--force", text="replace the file if it exists")
    store_flags(parser)


def run(args: Namespace, out: Output) -> int:
    from penstock.wiring.maintenance import backup

    settings = load_settings(args).settings
    with progress("Copying") as advance:
        copied = backup(settings, Path(args.target), replace=args.force, progress=advance)
    return out.result(copied, f"{copied.path} ({copied.size / MIB:.1f} MiB, checked)")


COMMANDS = {
    "backup": Command(
        run,
        configure,
        more="The copy shows one instant; it is checked and synced before it gets its name. To "
        "restore it, stop the server, remove penstock.db-wal and penstock.db-shm from the data "
        "folder, and replace penstock.db with the copy.",
        examples=(
            "penstock backup /backups --data ./data",
            "penstock backup yesterday.db --force",
        ),
    )
}
