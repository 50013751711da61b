"""`penstock messages bulk`: act on many messages of a queue."""

from __future__ import annotations

from argparse import Namespace

from penstock.api.manual_acts import Bulk, Where
from penstock.domain.message.lifecycle import State
from penstock.domain.message.selection import BulkAct
from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.flags import remote, server_flags
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.parser import Parser
from penstock.edge.cli.kit.record_flags import RecordFlags
from penstock.edge.cli.registry import Command

FILTERS = RecordFlags(Where, "kind tag group entity_id sent_from sent_before")
_OPTIONS = RecordFlags(Bulk, "reason due_at delay_ms is_running_ok:running is_dry_run:dry-run")


def _configure(parser: Parser) -> None:
    parser.argument("QUEUE", "name of the queue")
    parser.argument(
        "ACT", "complete, cancel, bury, redrive or reschedule", choices=[str(a) for a in BulkAct]
    )
    parser.flag(
        "--state",
        value="STATE",
        text="state of the messages: ready, waiting, dead, or leased (with --running)",
        choices=["ready", "waiting", "dead", "leased"],
        required=True,
    )
    FILTERS.add(parser)
    _OPTIONS.add(parser)
    server_flags(parser)


def _run(args: Namespace, out: Output) -> int:
    with remote(args) as server:
        done = server.messages.change_many(
            args.queue,
            BulkAct(args.act),
            where=Where(State(args.state), **FILTERS.values(args)),
            **_OPTIONS.values(args),
        )
    if out.json:
        out.record(done)
    elif args.dry_run:
        out.line(f"{done.matched} messages match; none was changed")
    else:
        out.line(f"{done.matched} messages match, {done.changed} changed, {done.refused} refused")
    if done.is_cut and not out.json:
        out.line("more messages match; run the command again for the rest")
    return exits.OK


COMMANDS = {
    "messages bulk": Command(
        _run,
        _configure,
        more="Selects the messages that match at the start, at most 100,000, and then acts on "
        "them.",
        examples=(
            "penstock messages bulk mail cancel --state waiting --kind welcome --dry-run",
            "penstock messages bulk mail redrive --state dead --sent-from 2031-01-01",
        ),
    )
}
