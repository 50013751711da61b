"""`penstock migrate`"""

from __future__ import annotations

from argparse import Namespace

from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.flags import load_settings, store_flags
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.parser import Parser
from penstock.edge.cli.kit.progress import progress
from penstock.edge.cli.registry import Command


def configure(parser: Parser) -> None:
    parser.flag("--sql", text="print the SQL instead of running it")
    store_flags(parser)


def run(args: Namespace, out: Output) -> int:
    settings = load_settings(args).settings
    if args.sql:
        from penstock.wiring.maintenance import pending_sql

        out.text("sql", pending_sql(settings))
        return exits.OK
    from penstock.wiring.broker import migrate

    with progress("Migrating"):
        applied = [f"{m.number:04}_{m.name}" for m in migrate(settings)]
    text = "\n".join(f"applied {name}" for name in applied) or "the schema is up to date"
    return out.result({"applied": applied}, text)


COMMANDS = {
    "migrate": Command(
        run,
        configure,
        more="A server migrates a SQLite store when it starts. A PostgreSQL store, which other "
        "nodes may be using, is migrated only by this command.",
        examples=(
            "penstock migrate --store postgresql://penstock@db/penstock",
            "penstock migrate --sql --store postgresql://penstock@db/penstock | less",
        ),
    )
}
