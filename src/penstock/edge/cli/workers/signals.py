"""`penstock signal`: continue the jobs that wait for a signal."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.bodies import body_of
from penstock.edge.cli.kit.command import AppCommand, argument, flag
from penstock.edge.cli.kit.output import Output

if TYPE_CHECKING:
    from penstock.client.app import Penstock


def _signal(app: Penstock, args: Namespace, out: Output) -> None:
    body = None if args.body is None else body_of(args.body)
    sent = app.signal(args.name, body, keep=args.keep)
    out.result(sent, f"{sent.name} ended {sent.ended_waits} waits")
    if sent.is_duplicate and not out.json:
        exits.note(f"a signal of this name was sent at {sent.at.isoformat()} and is still kept")


COMMANDS = {
    "signal": AppCommand(
        _signal,
        argument("NAME", "name of the signal"),
        argument("BODY", "body of the signal: JSON, or any other text", nargs="?"),
        flag("--keep", "how long waits that begin later find it; default: 7d", value="DURATION"),
        more="The first signal of a name counts: while it is kept, another one of that name "
        "changes nothing.",
        examples=(
            """penstock signal approved:17 '{"by": "ada"}'""",
            "penstock signal approved:17 --store sqlite:///jobs.db",
        ),
    ),
}
