"""`penstock archive`: history as Parquet files, and snapshots of unfinished messages."""

from __future__ import annotations

from argparse import Namespace

from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.flags import load_settings, store_flags
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.parser import Parser
from penstock.edge.cli.kit.progress import progress
from penstock.edge.cli.registry import Command
from penstock.settings import Settings
from penstock.settings.catalogue import catalogue

COLUMNS = ("table", "rows", "behind", "written")


def lake_flag(parser: Parser) -> None:
    parser.flag(
        "--lake",
        value="FOLDER",
        text="folder of the lake; default: lake in the data folder",
        env=catalogue()["archive.folder"].env,
        reads_env=False,
    )


def settings_of(args: Namespace) -> Settings:
    return load_settings(args, lake="archive.folder").settings


def _configure(parser: Parser) -> None:
    lake_flag(parser)
    store_flags(parser)


def _configure_run(parser: Parser) -> None:
    parser.flag("--anew", text="start a new lake with all history that the store still has")
    _configure(parser)


def _run(args: Namespace, out: Output) -> int:
    from penstock.wiring import archive_commands

    with progress("Archiving") as advance:
        archived = archive_commands.run(settings_of(args), anew=args.anew, progress=advance)
    written = ", ".join(f"{count} {table}" for table, count in archived.rows.items())
    out.result(archived, f"{written} in {archived.files} files")
    if not archived.is_final:
        exits.note("newer history waits for long-running transactions: run the command again later")
    return exits.OK


def _snapshot(args: Namespace, out: Output) -> int:
    from penstock.wiring import archive_commands

    with progress("Taking a snapshot") as advance:
        taken = archive_commands.snapshot(settings_of(args), progress=advance)
    return out.result(taken, f"snapshot {taken.snapshot_no}: {taken.messages} messages")


def _status(args: Namespace, out: Output) -> int:
    from penstock.wiring import archive_commands

    status = archive_commands.status(settings_of(args))
    if out.json:
        out.record(status)
        return exits.OK
    latest = status.latest
    out.fields(
        [
            ("lake", status.lake if status.is_made else f"none in {status.lake}"),
            ("snapshots", status.snapshots),
            ("latest", None if latest is None else latest.taken_at),
            ("messages in it", None if latest is None else latest.messages),
        ]
    )
    rows = [(t.table, t.rows, t.behind, t.written_at) for t in status.tables]
    out.line()
    out.table(COLUMNS, rows)
    return exits.OK


_STATUS = Command(
    _status,
    _configure,
    more="`behind` is about how many rows a run would write.",
    examples=("penstock archive status --data ./data", "penstock archive status --json"),
)
COMMANDS = {
    "archive": _STATUS,
    "archive status": _STATUS,
    "archive run": Command(
        _run,
        _configure_run,
        more="Writes history, attempts, facts and minute counters to Parquet files. Each row is "
        "written exactly once, however often the command runs, with or without a server, and even "
        "if it is killed. A server with archive.enabled does the same by itself.",
        examples=(
            "penstock archive run --data ./data",
            "penstock archive run --store postgresql://localhost/penstock --lake /lake",
        ),
    ),
    "archive snapshot": Command(
        _snapshot,
        _configure,
        more="The snapshot shows one instant; the server keeps working while it is taken.",
        examples=("penstock archive snapshot --data ./data",),
    ),
}
