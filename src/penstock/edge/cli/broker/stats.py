"""`penstock stats`"""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from penstock.edge.cli.broker.queues import show
from penstock.edge.cli.kit.command import ServerCommand, argument
from penstock.edge.cli.kit.output import Output, fields_of

if TYPE_CHECKING:
    from penstock.client.remote.server import Remote


def _run(server: Remote, args: Namespace, out: Output) -> None:
    if args.queue is not None:
        return show(server.queues.get(args.queue), out)
    stats = server.stats()
    facts = [
        ("store", stats.backend),
        ("version", stats.version),
        ("time", stats.now),
        ("queues", stats.queues),
        ("waiting claims", stats.waiting_claims),
    ]
    return out.show(stats, facts, fields_of(stats.counts), fields_of(stats.totals, "total "))


COMMANDS = {
    "stats": ServerCommand(
        _run,
        argument("QUEUE", "only this queue", nargs="?"),
        more="For the whole server, or for one queue.",
        examples=("penstock stats", "penstock stats mail --json"),
    )
}
