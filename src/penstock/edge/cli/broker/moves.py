"""`penstock moves`: move messages out of a queue in the background."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from penstock.api.moves import StartMove
from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.command import ServerCommand, argument, listing, showing
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.record_flags import RecordFlags
from penstock.edge.cli.kit.view import View

if TYPE_CHECKING:
    from penstock.client.remote.server import Remote

_OPTIONS = RecordFlags(StartMove, "to max_per_second")
_MOVE = View("id to state moved to_move max_per_second:per_second started_at ended_at reason")
_ONE = argument("ID", "id of the move, from the list")


def _start(server: Remote, args: Namespace, out: Output) -> None:
    move = server.moves.start(args.queue, **_OPTIONS.values(args))
    out.result(move, move.id)
    if not out.json:
        exits.note(f"about {move.to_move} messages to move; see penstock moves {move.queue}")


def _cancel(server: Remote, args: Namespace, out: Output) -> None:
    move = server.moves.cancel(args.id)
    out.result(move, f"{move.moved} moved before it was cancelled")


COMMANDS = {
    "moves": ServerCommand(
        listing(_MOVE, lambda server, args: server.moves.list(args.queue)),
        argument("QUEUE", "name of the queue"),
        more="Lists running moves and the latest ten that have ended.",
        examples=("penstock moves mail.dead", "penstock moves mail.dead --json"),
    ),
    "moves start": ServerCommand(
        _start,
        argument("QUEUE", "the queue to move messages out of, usually a dead-letter queue"),
        _OPTIONS.add,
        more="Prints the id of the move and returns at once; the server continues it, even after a "
        "restart. Dead messages get all their attempts again; with --to, ready messages that are "
        "not dead are moved too. Each queue has at most one move at a time.",
        examples=(
            "penstock moves start mail.dead --max-per-second 50",
            "penstock moves start mail.dead --to mail.again",
        ),
    ),
    "moves show": ServerCommand(
        showing(View("queue") + _MOVE, lambda server, args: server.moves.get(args.id)),
        _ONE,
        examples=("penstock moves show 01ba4e95-8a00-7cc4-a3ba-2b1d1c5f8e11",),
    ),
    "moves cancel": ServerCommand(
        _cancel,
        _ONE,
        examples=("penstock moves cancel 01ba4e95-8a00-7cc4-a3ba-2b1d1c5f8e11",),
    ),
}
