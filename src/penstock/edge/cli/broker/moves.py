"""`penstock moves`: move messages out of a queue in the background."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from penstock.api.moves import Move, StartMove
from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.command import ServerCommand, argument
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.record_flags import RecordFlags

if TYPE_CHECKING:
    from penstock.client.remote.server import Remote

_OPTIONS = RecordFlags(StartMove, "to max_per_second")
COLUMNS = ("id", "to", "state", "moved", "to move", "per second", "started", "ended", "reason")


_ONE = argument("ID", "id of the move, from the list")


def _list(server: Remote, args: Namespace, out: Output) -> None:
    out.records(server.moves.list(args.queue), COLUMNS, _row)


def _start(server: Remote, args: Namespace, out: Output) -> None:
    move = server.moves.start(args.queue, **_OPTIONS.values(args))
    out.result(move, move.id)
    if not out.json:
        exits.note(f"about {move.to_move} messages to move; see penstock moves {move.queue}")


def _show(server: Remote, args: Namespace, out: Output) -> None:
    move = server.moves.get(args.id)
    out.show(move, [("queue", move.queue), *zip(COLUMNS, _row(move), strict=True)])


def _cancel(server: Remote, args: Namespace, out: Output) -> None:
    move = server.moves.cancel(args.id)
    out.result(move, f"{move.moved} moved before it was cancelled")


def _row(move: Move) -> tuple[object, ...]:
    counts = (move.moved, move.to_move, move.max_per_second)
    return move.id, move.to, move.state, *counts, move.started_at, move.ended_at, move.reason


COMMANDS = {
    "moves": ServerCommand(
        _list,
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
        _show,
        _ONE,
        examples=("penstock moves show 01ba4e95-8a00-7cc4-a3ba-2b1d1c5f8e11",),
    ),
    "moves cancel": ServerCommand(
        _cancel,
        _ONE,
        examples=("penstock moves cancel 01ba4e95-8a00-7cc4-a3ba-2b1d1c5f8e11",),
    ),
}
