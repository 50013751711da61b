"""`penstock moves`: messages on their way out of a queue, in the background."""

from __future__ import annotations

from argparse import Namespace

from penstock.api.moves import Move
from penstock.edge.cli.broker.queues import named
from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.flags import remote, server_flags
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.parser import Parser
from penstock.edge.cli.registry import Command

COLUMNS = ("id", "to", "state", "moved", "to move", "per second", "started", "ended", "reason")


def _configure_start(parser: Parser) -> None:
    parser.argument("QUEUE", "where the messages are; mostly a dead-letter queue")
    parser.flag("--to", value="QUEUE", text="where they go; default: where each of them died")
    parser.flag(
        "--max-per-second",
        value="N",
        text="how many in a second at most; default: no limit",
        type=int,
    )
    server_flags(parser)


def _configure_one(parser: Parser) -> None:
    parser.argument("ID", "id of the move, as the list shows it")
    server_flags(parser)


def _list(args: Namespace, out: Output) -> int:
    with remote(args) as server:
        moves = server.moves.list(args.queue)
    if out.json:
        for move in moves:
            out.record(move)
    else:
        out.table(COLUMNS, map(_row, moves))
    return exits.OK


def _start(args: Namespace, out: Output) -> int:
    with remote(args) as server:
        move = server.moves.start(args.queue, to=args.to, max_per_second=args.max_per_second)
    if out.json:
        out.record(move)
    else:
        out.line(move.id)
        exits.note(f"about {move.to_move} to move; see penstock moves {move.queue}")
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
    if out.json:
        out.record(move)
    else:
        out.line(f"{move.moved} moved before it was cancelled")
    return exits.OK


def _row(move: Move) -> tuple[object, ...]:
    counts = (move.moved, move.to_move, move.max_per_second)
    return move.id, move.to, move.state, *counts, move.started_at, move.ended_at, move.reason


COMMANDS = {
    "moves": Command(
        _list,
        named,
        more="The latest ten that have ended are remembered.",
        examples=("penstock moves mail.dead", "penstock moves mail.dead --json"),
    ),
    "moves start": Command(
        _start,
        _configure_start,
        more="Prints the id of the move and returns at once; the server goes on, also after a "
        "restart. Dead messages get all their attempts anew; with --to ordinary messages that are "
        "ready are moved too. One move at a time out of each queue.",
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
