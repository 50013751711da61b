"""`penstock backup`"""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from penstock.edge.cli.kit.command import Command, argument, flag
from penstock.edge.cli.kit.flags import load_settings, store_flags
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.progress import progress

MIB = 1024 * 1024


def _run(args: Namespace, out: Output) -> None:
    from penstock.wiring.maintenance import backup

    settings = load_settings(args).settings
    with progress("Copying") as advance:
        copied = backup(settings, Path(args.target), replace=args.force, progress=advance)
    out.result(copied, f"{copied.path} ({copied.size / MIB:.1f} MiB, checked)")


COMMANDS = {
    "backup": Command(
        _run,
        argument("TARGET", "the file to write, or a folder to write it to"),
        flag("--force", "replace the file if it exists"),
        store_flags,
        more="The copy shows one instant; it is checked and synced before it gets its name. To "
        "restore it, stop the server, remove penstock.db-wal and penstock.db-shm from the data "
        "folder, and replace penstock.db with the copy.",
        examples=(
            "penstock backup /backups --data ./data",
            "penstock backup yesterday.db --force",
        ),
    )
}
