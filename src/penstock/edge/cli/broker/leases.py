"""`penstock claim`, and acts on leases: one command per verb, for the receipts of the claim."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Any

from penstock.api.leases import ActFields, BatchAct, Claim
from penstock.api.messages import Acted, Message
from penstock.domain.message.lease import Verb
from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.aliases import ALIASES
from penstock.edge.cli.kit.bodies import body_of
from penstock.edge.cli.kit.command import ServerCommand, argument, flag
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.record_flags import Form, RecordFlags
from penstock.edge.cli.kit.view import View

if TYPE_CHECKING:
    from penstock.client.remote.server import Remote

_OPTIONS = RecordFlags(Claim, "wait_ms lease_ms kinds:kind in_a_row claim_key claimed_by:by")
_CLAIMED = View(
    "id receipt body attempts:attempt leased_until deadline_at kind entity_id:entity_id tags group "
    "attributes dead_from:died_in",
    body=lambda message: "null" if message.body is None else message.body,
)


def _claim(server: Remote, args: Namespace, out: Output) -> int | None:
    messages = server.claim(args.queue, limit=args.limit, **_OPTIONS.values(args))
    for message in messages:
        _show_message(message, out)
    if not messages:
        return exits.NOTHING
    if not args.complete:
        return None
    return _act(server, [message.receipt for message in messages], Verb.COMPLETE, None)


def _show_message(message: Message, out: Output) -> None:
    out.show(message, _CLAIMED.lines(message))
    if not out.json:
        out.line()


def _act(server: Remote, receipts: list[str], verb: Verb, out: Output | None, **fields: Any) -> int:
    """Act on each lease; reports the refused ones, and shows the others if there is an output."""
    code = exits.OK
    for result in server.act_batch([BatchAct(receipt, verb, **fields) for receipt in receipts]):
        if not isinstance(result, Acted):
            exits.report(result, result.code)
            code = exits.REFUSED
        elif out is not None:
            out.result(result, f"{result.id} {result.state}")
    return code


def _command(verb: Verb, fields: str, more: str, *examples: str) -> ServerCommand:
    forms = {name: Form("JSON", body_of) for name in ("progress", "result")}
    flags = RecordFlags(ActFields, fields, forms=forms)
    return ServerCommand(
        lambda server, args, out: _act(server, args.receipt, verb, out, **flags.values(args)),
        argument("RECEIPT", "receipt that the claim printed", nargs="+"),
        flags.add,
        more=more,
        examples=examples,
    )


COMMANDS = {
    "claim": ServerCommand(
        _claim,
        argument("QUEUE", "name of the queue"),
        flag("-n --limit", "maximum number of messages", type=int, default=1),
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
    ),
    "complete": _command(
        Verb.COMPLETE,
        "result",
        "They are done and move from the queue to the history. A receipt whose lease is lost is "
        "rejected, and the command exits with code 1.",
        "penstock complete RECEIPT",
        """penstock complete RECEIPT --result '{"total": 17}'""",
    ),
    "fail": _command(
        Verb.FAIL,
        "error retry_in_ms",
        "A message without attempts left is dead.",
        "penstock fail RECEIPT --error 'no route to host' --retry-in 5m",
    ),
    "release": _command(
        Verb.RELEASE,
        "delay_ms",
        "The attempt does not count.",
        "penstock release RECEIPT --delay 1m",
    ),
    "extend": _command(
        Verb.EXTEND,
        "lease_ms is_start progress",
        "After the deadline of a message the extension is rejected and the attempt times out.",
        "penstock extend RECEIPT --lease 10m",
        """penstock extend RECEIPT --progress '{"done": 10, "of": 100}'""",
    ),
    "snooze": _command(
        Verb.SNOOZE,
        "delay_ms",
        "Like a release, but the history shows that it was intended.",
        "penstock snooze RECEIPT --delay 1h",
    ),
}
