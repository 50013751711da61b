"""Acts on messages and jobs by their ids: the flags that they share, and the loop over the ids."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Sequence

from penstock.api.manual_acts import Buried
from penstock.api.messages import Acted
from penstock.domain.errors import PenstockError
from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.exits import UsageError
from penstock.edge.cli.kit.flags import duration, instant
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.parser import Parser


def act_on_each(ids: Sequence[str], act: Callable[[str], Acted | Buried], out: Output) -> int:
    """All are tried.  Returns the exit code: that of the last refusal, if there was one."""
    code = exits.OK
    for one in ids:
        try:
            acted = act(one)
        except PenstockError as error:
            exits.tell(error, error.code)
            code = exits.exit_code(error)
            continue
        if out.json:
            # A buried message is not due again; its document has the same keys all the same.
            due_at = acted.due_at if isinstance(acted, Acted) else None
            out.record({"id": acted.id, "state": acted.state, "due_at": due_at})
        else:
            out.line(f"{acted.id} {acted.state}")
    return code


def reason_flag(parser: Parser) -> None:
    parser.flag("--reason", value="TEXT", text="why, for the history")


def due_flags(parser: Parser) -> None:
    parser.flag(
        "--due-at",
        value="INSTANT",
        text="ISO 8601; UTC unless it has an offset",
        type=instant,
    )
    parser.flag("--delay", value="DURATION", text="the same, counted from now", type=duration)


def check_due(args: Namespace) -> None:
    """Raises UsageError unless one of the two is given."""
    if (args.due_at is None) is (args.delay is None):
        raise UsageError("give --due-at or --delay, and not both")
