"""`penstock moves`: move messages out of a queue in the background."""

from __future__ import annotations

from argparse import Namespace

from penstock.api.moves import Move, StartMove
from penstock.edge.cli.broker.queues import queue_argument
from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.flags import remote, server_flags
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.parser import Parser
from penstock.edge.cli.kit.record_flags import RecordFlags
from penstock.edge.cli.registry import Command

_OPTIONS = RecordFlags(StartMove, "to max_per_second")
COLUMNS = ("id", "to", "state", "moved", "to move", "per second", "started", "ended", "reason")


def _configure_start(parser: Parser) -> None:
    parser.argument("QUEUE", "the queue to move messages out of, usually a dead-letter queue")
    _OPTIONS.add(parser)
    server_flags(parser)


def _configure_one(parser: Parser) -> None:
    parser.argument("ID", "id of the move, from the list")
    server_flags(parser)


def _list(args: Namespace, out: Output) -> int:
    with remote(args) as server:
        return out.records(server.moves.list(args.queue), COLUMNS, _row)


def _start(args: Namespace, out: Output) -> int:
    with remote(args) as server:
        move = server.moves.start(args.queue, **_OPTIONS.values(args))
    if out.json:
        out.record(move)
    else:
        out.line(move.id)
        exits.note(f"about {move.to_move} messages to move; see penstock moves {move.queue}")
    return exits.OK


def _show(args: Namespace, out: Output) -> int:
    with remote(args) as server:
        move = server.moves.get(args.id)
    if out.json:
        out.record(move)
    else:
        out.fields([("queue", move.queue), *zip(COLUMNS, _row(move), strict=True)])
    return exits.OK


def _cancel(args: Namespace, out: Output) -> int:
    with remote(args) as server:
        move = server.moves.cancel(args.id)
    return out.result(move, f"{move.moved} moved before it was cancelled")


def _row(move: Move) -> tuple[object, ...]:
    counts = (move.moved, move.to_move, move.max_per_second)
    return move.id, move.to, move.state, *counts, move.started_at, move.ended_at, move.reason


COMMANDS = {
    "moves": Command(
        _list,
        queue_argument,
        more="Lists running moves and the latest ten that have ended.",
        examples=("penstock moves mail.dead", "penstock moves mail.dead --json"),
    ),
    "moves start": Command(
        _start,
        _configure_start,
        more="Prints the id of the move and returns at once; the server continues it, even after a "
        "restart. Dead messages get all their attempts again; with --to, ready messages that are "
        "not dead are moved too. Each queue has at most one move at a time.",
        examples=(
            "penstock moves start mail.dead --max-per-second 50",
            "penstock moves start mail.dead --to mail.again",
        ),
    ),
    "moves show": Command(
        _show,
        _configure_one,
        examples=("penstock moves show 01ba4e95-8a00-7cc4-a3ba-2b1d1c5f8e11",),
    ),
    "moves cancel": Command(
        _cancel,
        _configure_one,
        examples=("penstock moves cancel 01ba4e95-8a00-7cc4-a3ba-2b1d1c5f8e11",),
    ),
}
