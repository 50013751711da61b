"""`penstock messages bulk`: acts by hand on many messages of a queue."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from penstock.api.manual_acts import Where
from penstock.domain.message.lifecycle import State
from penstock.domain.message.selection import BulkAct
from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.flags import duration, instant, remote, server_flags
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.parser import Parser
from penstock.edge.cli.registry import Command

_FILTERS = ("kind", "tag", "group", "entity_id", "sent_from", "sent_before")


def pick_flags(parser: Parser) -> None:
    """Which messages are meant."""
    parser.flag("--kind", value="KIND", text="only of this kind")
    parser.flag("--tag", value="TAG", text="only with this tag")
    parser.flag("--group", value="GROUP", text="only of this group")
    parser.flag("--entity-id", value="ID", text="only about this")
    parser.flag("--sent-from", value="INSTANT", text="sent at or after", type=instant)
    parser.flag("--sent-before", value="INSTANT", text="sent before", type=instant)


def picked(args: Namespace) -> dict[str, Any]:
    return {name: v for name in _FILTERS if (v := getattr(args, name)) is not None}


def _configure(parser: Parser) -> None:
    parser.argument("QUEUE", "name of the queue")
    parser.argument(
        "ACT", "complete, cancel, bury, redrive or reschedule", choices=[str(a) for a in BulkAct]
    )
    parser.flag(
        "--state",
        value="STATE",
        text="of which state: ready, waiting, dead, or leased (with --running)",
        choices=["ready", "waiting", "dead", "leased"],
        required=True,
    )
    pick_flags(parser)
    parser.flag("--reason", value="TEXT", text="why, for the history")
    parser.flag("--due-at", value="INSTANT", text="for reschedule: the due date", type=instant)
    parser.flag("--delay", value="DURATION", text="for reschedule: counted from now", type=duration)
    parser.flag("--running", text="cancel, bury: also what is leased; its workers lose it")
    parser.flag("--dry-run", text="only tell how many they are", action="store_true")
    server_flags(parser)


def _run(args: Namespace, out: Output) -> int:
    with remote(args) as server:
        done = server.messages.change_many(
            args.queue,
            BulkAct(args.act),
            where=Where(State(args.state), **picked(args)),
            reason=args.reason,
            due_at=args.due_at,
            delay_ms=args.delay,
            is_dry_run=args.dry_run,
            is_running_ok=args.running,
        )
    if out.json:
        out.record(done)
    elif args.dry_run:
        out.line(f"{done.matched} messages fit; nothing was changed")
    else:
        out.line(f"{done.matched} messages fit, {done.changed} changed, {done.refused} refused")
    if done.is_cut and not out.json:
        out.line("there are more; say it again for the others")
    return exits.OK


COMMANDS = {
    "messages bulk": Command(
        _run,
        _configure,
        more="What fits when it begins is found first, at most 100,000; --dry-run only counts it.",
        examples=(
            "penstock messages bulk mail cancel --state waiting --kind welcome --dry-run",
            "penstock messages bulk mail redrive --state dead --sent-from 2031-01-01",
        ),
    )
}
