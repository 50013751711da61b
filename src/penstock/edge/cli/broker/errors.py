"""`penstock errors`: group the errors of dead messages, and retry those of a group."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from penstock.api.browsing import ListErrors, RedriveErrors
from penstock.edge.cli.kit.command import ServerCommand, argument
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.record_flags import RecordFlags
from penstock.edge.cli.kit.view import View

if TYPE_CHECKING:
    from penstock.client.remote.server import Remote

_FILTERS = RecordFlags(ListErrors, "queue")
_REDRIVE = RecordFlags(RedriveErrors, "queue is_dry_run:dry-run")
_GROUP = View(
    "id messages error place first_at:first last_at:last queues",
    queues=lambda group: ", ".join(group.queues),
)


def _list(server: Remote, args: Namespace, out: Output) -> None:
    found = server.errors.groups(**_FILTERS.values(args))
    out.records(found.groups, _GROUP)
    if found.is_cut and not out.json:
        out.line("at most 10,000 messages are examined; not all dead ones are counted")


def _redrive(server: Remote, args: Namespace, out: Output) -> None:
    done = server.errors.redrive(args.id, **_REDRIVE.values(args))
    text = f"{done.matched} messages match, {done.changed} redriven, {done.refused} refused"
    out.result(done, f"{done.matched} messages match; none was changed" if args.dry_run else text)


COMMANDS = {
    "errors": ServerCommand(
        _list,
        _FILTERS.add,
        more="One group per exception and place; at most 10,000 messages are examined.",
        examples=("penstock errors", "penstock errors --queue mail"),
    ),
    "errors redrive": ServerCommand(
        _redrive,
        argument("ID", "id of the group, as `penstock errors` shows it"),
        _REDRIVE.add,
        more="They get all their attempts again, in the queues they died in.",
        examples=("penstock errors redrive 9f86d081884c7d65 --dry-run",),
    ),
}
