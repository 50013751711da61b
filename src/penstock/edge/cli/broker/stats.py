"""`penstock stats`"""

from __future__ import annotations

from argparse import Namespace

from penstock.api.overview import Stats
from penstock.edge.cli.broker.queues import show
from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.flags import remote, server_flags
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.parser import Parser
from penstock.edge.cli.registry import Command


def configure(parser: Parser) -> None:
    parser.argument("QUEUE", "only this queue", nargs="?")
    server_flags(parser)


def run(args: Namespace, out: Output) -> int:
    with remote(args) as server:
        if args.queue is not None:
            return show(server.queues.get(args.queue), out)
        stats = server.stats()
    if out.json:
        out.record(stats)
    else:
        _show(stats, out)
    return exits.OK


def _show(stats: Stats, out: Output) -> None:
    out.fields(
        [
            ("store", stats.backend),
            ("version", stats.version),
            ("time", stats.now),
            ("queues", stats.queues),
            ("waiting claims", stats.waiting_claims),
        ]
    )
    out.line()
    counts, totals = stats.counts, stats.totals
    out.fields((name, getattr(counts, name)) for name in counts.__struct_fields__)
    out.line()
    out.fields((f"total {name}", getattr(totals, name)) for name in totals.__struct_fields__)


COMMANDS = {
    "stats": Command(
        run,
        configure,
        more="For the whole server, or for one queue.",
        examples=("penstock stats", "penstock stats mail --json"),
    )
}
