"""Acts on messages and jobs by id: their shared flags, and the loop over the ids."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Sequence
from typing import Any

from penstock.api.manual_acts import Buried, Reason, Reschedule
from penstock.api.messages import Acted
from penstock.domain.errors import PenstockError
from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.command import Command, Part, argument
from penstock.edge.cli.kit.exits import UsageError
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.record_flags import RecordFlags


def act_on_each(ids: Sequence[str], act: Callable[[str], Acted | Buried], out: Output) -> int:
    """Act on every id; return the exit code of the last rejection, or OK."""
    code = exits.OK
    for one in ids:
        try:
            acted = act(one)
        except PenstockError as error:
            exits.report(error, error.code)
            code = exits.exit_code(error)
            continue
        # A buried message is never due again; its document keeps the same keys.
        due_at = acted.due_at if isinstance(acted, Acted) else None
        record = {"id": acted.id, "state": acted.state, "due_at": due_at}
        out.result(record, f"{acted.id} {acted.state}")
    return code


def act_command(
    kind: type[Command],
    noun: str,
    act: Callable[[Any, str, Namespace], Acted | Buried],
    example: str,
    *flags: Part,
    more: str = "",
) -> Command:
    """A command that acts on each id; `act` takes the client, the id and the arguments."""

    def run(client: Any, args: Namespace, out: Output) -> int:
        return act_on_each(args.id, lambda one: act(client, one, args), out)

    ids = argument("ID", f"ids of the {noun}", nargs="+")
    return kind(run, ids, *flags, more=more, examples=(example,))


REASON = RecordFlags(Reason, "reason").add
DUE = RecordFlags(Reschedule, "due_at delay_ms").add


def check_due(args: Namespace) -> None:
    """Raise UsageError unless exactly one of the two flags is given."""
    if (args.due_at is None) is (args.delay is None):
        raise UsageError("give either --due-at or --delay")
