"""Acts on leases, one command per verb; each takes the receipts that a claim printed."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Any

from penstock.api.leases import ActFields, BatchAct
from penstock.api.messages import Acted
from penstock.domain.message.lease import Verb
from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.bodies import body_of
from penstock.edge.cli.kit.command import ServerCommand, argument
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.record_flags import Form, RecordFlags

if TYPE_CHECKING:
    from penstock.client.remote.server import Remote


def _command(verb: Verb, fields: str, more: str, *examples: str) -> ServerCommand:
    forms = {"progress": Form("JSON", body_of)}
    flags = RecordFlags(ActFields, fields, forms=forms)

    def run(server: Remote, args: Namespace, out: Output) -> int:
        options: dict[str, Any] = flags.values(args)
        results = server.act_batch([BatchAct(r, verb, **options) for r in args.receipt])
        code = exits.OK
        for result in results:
            if isinstance(result, Acted):
                out.result(result, f"{result.id} {result.state}")
            else:
                exits.report(result, result.code)
                code = exits.REFUSED
        return code

    receipts = argument("RECEIPT", "receipt that the claim printed", nargs="+")
    return ServerCommand(run, receipts, flags.add, more=more, examples=examples)


COMMANDS = {
    "complete": _command(
        Verb.COMPLETE,
        "",
        "They are done and move from the queue to the history. A receipt whose lease is lost is "
        "refused, and the command exits with code 1.",
        "penstock complete RECEIPT",
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
        "After the deadline of a message the extension is refused and the attempt times out.",
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
