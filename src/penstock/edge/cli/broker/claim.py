"""`penstock receive`: claim messages and show them."""

from __future__ import annotations

from argparse import Namespace

from penstock.api.leases import BatchAct
from penstock.api.messages import Acted, Message
from penstock.client.remote.server import ClaimedMessage, Remote
from penstock.domain.message.lease import Verb
from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.aliases import FINISH, TAKE
from penstock.edge.cli.kit.flags import duration, remote, server_flags
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.parser import Parser
from penstock.edge.cli.registry import Command


def configure(parser: Parser) -> None:
    parser.argument("QUEUE", "name of the queue")
    parser.flag("-n", "--limit", value="N", text="how many at most; default 1", type=int, default=1)
    parser.flag(
        "--wait",
        value="DURATION",
        text="how long to wait for the first one; default: as the queue says",
        type=duration,
    )
    parser.flag(
        "--lease",
        value="DURATION",
        text="how long they are yours; default: the queue's",
        type=duration,
    )
    parser.flag("--kind", value="KIND", text="only of this kind; may be repeated", action="append")
    parser.flag("--in-a-row", text="of a group as many as are ready, in a queue ordered by group")
    parser.flag("--claim-key", value="KEY", text="the same key again gives the same messages")
    parser.flag("--by", value="NAME", text="who claims, for the history")
    parser.flag(f"--{FINISH}", text="complete them at once, after they are printed")
    server_flags(parser)


def run(args: Namespace, out: Output) -> int:
    with remote(args) as server:
        messages = server.claim(
            args.queue,
            limit=args.limit,
            wait_ms=args.wait,
            lease_ms=args.lease,
            claimed_by=args.by,
            in_a_row=args.in_a_row,
            claim_key=args.claim_key,
            kinds=args.kind,
        )
        for message in messages:
            show(message, out)
        if not messages:
            return exits.NOTHING
        if getattr(args, FINISH):
            return _complete(server, messages)
    return exits.OK


def show(message: Message, out: Output) -> None:
    if out.json:
        out.record(message)
        return
    out.fields(
        [
            ("id", message.id),
            ("receipt", message.receipt),
            ("body", message.body if message.body is not None else "null"),
            ("attempt", message.attempts),
            ("leased until", message.leased_until),
            ("deadline", message.deadline_at),
            ("kind", message.kind),
            ("entity_id", message.entity_id),
            ("tags", message.tags),
            ("group", message.group),
            ("attributes", message.attributes),
            ("died in", message.dead_from),
        ]
    )
    out.line()


def _complete(server: Remote, messages: list[ClaimedMessage]) -> int:
    results = server.act_batch([BatchAct(m.receipt, Verb.COMPLETE) for m in messages])
    refused = [result for result in results if not isinstance(result, Acted)]
    for error in refused:
        exits.tell(error, error.code)
    return exits.REFUSED if refused else exits.OK


COMMANDS = {
    TAKE: Command(
        run,
        configure,
        more="Each message is leased to you until you complete it, fail it or let the lease run "
        "out; its receipt is what those commands take. Ends with code 4 when no message came.",
        examples=(
            f"penstock {TAKE} mail --wait 20s --lease 5m",
            f"penstock {TAKE} mail -n 10 --json | jq -r .receipt",
            f"penstock {TAKE} mail --{FINISH}",
            f"penstock {TAKE} mail --kind welcome --kind reminder",
        ),
    )
}
