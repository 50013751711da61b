"""`penstock backup`, `migrate` and `promote`: copy a store, change its schema, or move it."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from penstock.edge.cli.kit.command import StoreCommand, argument, flag
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.progress import progress
from penstock.settings import Settings

MIB = 1024 * 1024


def _backup(settings: Settings, args: Namespace, out: Output) -> None:
    from penstock.wiring.maintenance import backup

    with progress("Copying") as advance:
        copied = backup(settings, Path(args.target), replace=args.force, progress=advance)
    out.result(copied, f"{copied.path} ({copied.size / MIB:.1f} MiB, checked)")


def _migrate(settings: Settings, args: Namespace, out: Output) -> None:
    if args.sql:
        from penstock.wiring.maintenance import pending_sql

        return out.text("sql", pending_sql(settings))
    from penstock.wiring.broker import migrate

    with progress("Migrating"):
        applied = [f"{m.number:04}_{m.name}" for m in migrate(settings)]
    text = "\n".join(f"applied {name}" for name in applied) or "the schema is up to date"
    return out.result({"applied": applied}, text)


def _promote(settings: Settings, args: Namespace, out: Output) -> None:
    from penstock.wiring.maintenance import promote

    with progress("Moving") as advance:
        moved = promote(settings, args.to, progress=advance)
    out.result({"promoted": moved}, "the store has moved; start the server with --store")


COMMANDS = {
    "backup": StoreCommand(
        _backup,
        argument("TARGET", "the file to write, or a folder to write it to"),
        flag("--force", "replace the file if it exists"),
        more="The copy shows one instant; it is checked and synced before it gets its name. To "
        "restore it, stop the server, remove penstock.db-wal and penstock.db-shm from the data "
        "folder, and replace penstock.db with the copy.",
        examples=(
            "penstock backup /backups --data ./data",
            "penstock backup yesterday.db --force",
        ),
    ),
    "migrate": StoreCommand(
        _migrate,
        flag("--sql", "print the SQL instead of running it"),
        more="A server migrates a SQLite store when it starts. A PostgreSQL store, which other "
        "nodes may be using, is migrated only by this command.",
        examples=(
            "penstock migrate --store postgresql://penstock@db/penstock",
            "penstock migrate --sql --store postgresql://penstock@db/penstock | less",
        ),
    ),
    "promote": StoreCommand(
        _promote,
        flag(
            "--to",
            "the PostgreSQL or MariaDB database, which must be empty",
            value="URL",
            required=True,
        ),
        more="Stop the server first; afterwards start it with --store.",
        examples=("penstock promote --data ./data --to postgresql://penstock@db/penstock",),
    ),
}
