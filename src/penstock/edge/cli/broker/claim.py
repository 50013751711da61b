"""`penstock claim`: claim messages and show them."""

from __future__ import annotations

from argparse import Namespace

from penstock.api.leases import BatchAct, Claim
from penstock.api.messages import Acted, Message
from penstock.client.remote.server import ClaimedMessage, Remote
from penstock.domain.message.lease import Verb
from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.aliases import ALIASES
from penstock.edge.cli.kit.flags import remote, server_flags
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.parser import Parser
from penstock.edge.cli.kit.record_flags import RecordFlags
from penstock.edge.cli.registry import Command

_OPTIONS = RecordFlags(Claim, "wait_ms lease_ms kinds:kind in_a_row claim_key claimed_by:by")


def configure(parser: Parser) -> None:
    parser.argument("QUEUE", "name of the queue")
    parser.flag(
        "-n", "--limit", value="N", text="how many messages at most; default 1", type=int, default=1
    )
    _OPTIONS.add(parser)
    parser.flag(
        "--complete", f"--{ALIASES['complete']}", text="complete the messages after printing them"
    )
    server_flags(parser)


def run(args: Namespace, out: Output) -> int:
    with remote(args) as server:
        messages = server.claim(args.queue, limit=args.limit, **_OPTIONS.values(args))
        for message in messages:
            show(message, out)
        if not messages:
            return exits.NOTHING
        if args.complete:
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
        exits.report(error, error.code)
    return exits.REFUSED if refused else exits.OK


COMMANDS = {
    "claim": Command(
        run,
        configure,
        more="Each message is leased to you until you complete it, fail it or its lease expires; "
        "those commands take its receipt. Exits with code 4 if no message arrived.",
        examples=(
            "penstock claim mail --wait 20s --lease 5m",
            "penstock claim mail -n 10 --json | jq -r .receipt",
            "penstock claim mail --complete",
            "penstock claim mail --kind welcome --kind reminder",
        ),
    )
}
