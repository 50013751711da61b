"""`penstock migrate`"""

from __future__ import annotations

from argparse import Namespace

from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.flags import loaded, store_flags
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.parser import Parser
from penstock.edge.cli.kit.progress import progress
from penstock.edge.cli.registry import Command


def configure(parser: Parser) -> None:
    parser.flag("--sql", text="print what would be run, and run nothing")
    store_flags(parser)


def run(args: Namespace, out: Output) -> int:
    settings = loaded(args).settings
    if args.sql:
        from penstock.wiring.maintenance import pending_sql

        out.text("sql", pending_sql(settings))
        return exits.OK
    from penstock.wiring.broker import migrate

    with progress("Migrating"):
        applied = [f"{m.number:04}_{m.name}" for m in migrate(settings)]
    if out.json:
        out.record({"applied": applied})
    else:
        out.line("\n".join(f"applied {name}" for name in applied) or "the schema is up to date")
    return exits.OK


COMMANDS = {
    "migrate": Command(
        run,
        configure,
        more="SQLite is migrated at every start of the server; PostgreSQL only by this command, "
        "because other nodes may be using it.",
        examples=(
            "penstock migrate --store postgresql://penstock@db/penstock",
            "penstock migrate --sql --store postgresql://penstock@db/penstock | less",
        ),
    )
}
