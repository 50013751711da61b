"""`penstock migrate`"""

from __future__ import annotations

from argparse import Namespace

from penstock.edge.cli.kit.command import Command, flag
from penstock.edge.cli.kit.flags import load_settings, store_flags
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.progress import progress


def _run(args: Namespace, out: Output) -> None:
    settings = load_settings(args).settings
    if args.sql:
        from penstock.wiring.maintenance import pending_sql

        return out.text("sql", pending_sql(settings))
    from penstock.wiring.broker import migrate

    with progress("Migrating"):
        applied = [f"{m.number:04}_{m.name}" for m in migrate(settings)]
    text = "\n".join(f"applied {name}" for name in applied) or "the schema is up to date"
    return out.result({"applied": applied}, text)


COMMANDS = {
    "migrate": Command(
        _run,
        flag("--sql", "print the SQL instead of running it"),
        store_flags,
        more="A server migrates a SQLite store when it starts. A PostgreSQL store, which other "
        "nodes may be using, is migrated only by this command.",
        examples=(
            "penstock migrate --store postgresql://penstock@db/penstock",
            "penstock migrate --sql --store postgresql://penstock@db/penstock | less",
        ),
    )
}
