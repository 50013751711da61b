"""`penstock claim`: claim messages and show them."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from penstock.api.leases import BatchAct, Claim
from penstock.api.messages import Acted, Message
from penstock.domain.message.lease import Verb
from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.aliases import ALIASES
from penstock.edge.cli.kit.command import ServerCommand, argument, flag
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.record_flags import RecordFlags

if TYPE_CHECKING:
    from penstock.client.remote.server import ClaimedMessage, Remote

_OPTIONS = RecordFlags(Claim, "wait_ms lease_ms kinds:kind in_a_row claim_key claimed_by:by")


def _run(server: Remote, args: Namespace, out: Output) -> int | None:
    messages = server.claim(args.queue, limit=args.limit, **_OPTIONS.values(args))
    for message in messages:
        _show(message, out)
    if not messages:
        return exits.NOTHING
    return _complete(server, messages) if args.complete else None


def _show(message: Message, out: Output) -> None:
    out.show(
        message,
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
        ],
    )
    if not out.json:
        out.line()


def _complete(server: Remote, messages: list[ClaimedMessage]) -> int:
    results = server.act_batch([BatchAct(m.receipt, Verb.COMPLETE) for m in messages])
    refused = [result for result in results if not isinstance(result, Acted)]
    for error in refused:
        exits.report(error, error.code)
    return exits.REFUSED if refused else exits.OK


COMMANDS = {
    "claim": ServerCommand(
        _run,
        argument("QUEUE", "name of the queue"),
        flag("-n --limit", "how many messages at most", type=int, default=1),
        _OPTIONS.add,
        flag(f"--complete --{ALIASES['complete']}", "complete the messages after printing them"),
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
