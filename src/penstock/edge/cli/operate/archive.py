"""`penstock archive`: history as Parquet files, and snapshots of unfinished messages."""

from __future__ import annotations

import os
from argparse import Namespace

from penstock.domain.lake.places import join
from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.command import StoreCommand, flag
from penstock.edge.cli.kit.flags import setting_flag
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.progress import progress
from penstock.edge.cli.kit.view import View
from penstock.settings import Settings

_TABLES = View("table rows behind written_at")
lake_flag = setting_flag(
    "--lake",
    "archive.folder",
    value="FOLDER",
    text="folder of the lake; default: lake in the data folder",
)
tables_flag = flag(
    "--tables",
    "folder of the computed tables; default: insights.folder, or derived in the lake, always with "
    "--lake",
    value="FOLDER",
    env="PENSTOCK_PIPELINE_TABLES",
)


def lake_folder(settings: Settings) -> str:
    """The lake of the settings."""
    # A URL such as s3a://… must not be made an absolute path.
    return settings.archive.folder or os.path.abspath(settings.lake_folder)


def tables_folder(settings: Settings, args: Namespace) -> str:
    """Where all commands find the computed tables, and write them."""
    if args.tables is not None:
        return str(args.tables)
    # A flag that names a lake means the tables in it, wherever those of the settings are.
    if args.lake is None and settings.insights.folder:
        return settings.insights.folder
    return join(lake_folder(settings), "derived")


def _run(settings: Settings, args: Namespace, out: Output) -> None:
    from penstock.wiring import archive_commands

    with progress("Archiving") as advance:
        archived = archive_commands.run(settings, new_lake=args.new_lake, progress=advance)
    written = ", ".join(f"{count} {table}" for table, count in archived.rows.items())
    out.result(archived, f"{written} in {archived.files} files")
    if not archived.is_final:
        exits.note("newer history waits for long-running transactions: run the command again later")


def _snapshot(settings: Settings, args: Namespace, out: Output) -> None:
    from penstock.wiring import archive_commands

    with progress("Taking a snapshot") as advance:
        taken = archive_commands.snapshot(settings, progress=advance)
    out.result(taken, f"snapshot {taken.snapshot_no}: {taken.messages} messages")


def _status(settings: Settings, args: Namespace, out: Output) -> None:
    from penstock.wiring import archive_commands

    status = archive_commands.status(settings)
    latest = status.latest
    facts = [
        ("lake", status.lake if status.is_made else f"none in {status.lake}"),
        ("snapshots", status.snapshots),
        ("latest", None if latest is None else latest.taken_at),
        ("messages in it", None if latest is None else latest.messages),
    ]
    out.show(status, facts, _TABLES.table(status.tables))


_STATUS = StoreCommand(
    _status,
    lake_flag,
    more="`behind` is about how many rows a run would write.",
    examples=("penstock archive status --data ./data", "penstock archive status --json"),
)
COMMANDS = {
    "archive": _STATUS,
    "archive status": _STATUS,
    "archive run": StoreCommand(
        _run,
        flag("--new-lake", "start a new lake with all history that the store still has"),
        lake_flag,
        more="Writes history, attempts, facts and minute counters to Parquet files. Each row is "
        "written exactly once, however often the command runs, with or without a server, and even "
        "if it is killed. A server with archive.enabled does the same by itself.",
        examples=(
            "penstock archive run --data ./data",
            "penstock archive run --store postgresql://localhost/penstock --lake /lake",
        ),
    ),
    "archive snapshot": StoreCommand(
        _snapshot,
        lake_flag,
        more="The snapshot shows one instant; the server keeps working while it is taken.",
        examples=("penstock archive snapshot --data ./data",),
    ),
}
