"""`penstock workers`: who is there, what they hold, and how to drain them."""

from __future__ import annotations

from argparse import Namespace

from penstock.api.workers import Worker
from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.flags import remote, server_flags
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.parser import Parser
from penstock.edge.cli.registry import Command

COLUMNS = ("id", "name", "host", "pid", "state", "slots", "holding", "queues", "last beat")
LEASES = ("message", "queue", "kind", "attempts", "leased", "until")
_ID = "01ba4e95-8a00-7cc4-a3ba-2b1d1c5f8e11"


def _configure_list(parser: Parser) -> None:
    parser.flag("--gone", text="also those that have left or were lost", action="store_true")
    server_flags(parser)


def _configure_one(parser: Parser) -> None:
    parser.argument("ID", "id of the worker, as the list shows it")
    server_flags(parser)


def _list(args: Namespace, out: Output) -> int:
    with remote(args) as server:
        found = list(server.workers.list(gone=args.gone))
    if out.json:
        for worker in found:
            out.record(worker)
    else:
        out.table(COLUMNS, map(_row, found))
    return exits.OK


def _show(args: Namespace, out: Output) -> int:
    with remote(args) as server:
        worker = server.workers.get(args.id)
    if out.json:
        out.record(worker)
        return exits.OK
    more = [
        ("kinds", worker.kinds),
        ("labels", worker.labels),
        ("registered", worker.registered_at),
        ("alive until", worker.alive_until),
        ("ended", worker.ended_at),
    ]
    out.fields([*zip(COLUMNS, _row(worker), strict=True), *more])
    if worker.leases:
        out.line()
        out.table(
            LEASES,
            (
                (m.id, m.queue, m.kind, m.attempts, m.leased_at, m.leased_until)
                for m in worker.leases
            ),
        )
    return exits.OK


def _drain(args: Namespace, out: Output) -> int:
    with remote(args) as server:
        worker = server.workers.drain(args.id)
    if out.json:
        out.record(worker)
    else:
        out.line(f"{worker.id} is {worker.state}: it hears of it with its next beat")
    return exits.OK


def _row(worker: Worker) -> tuple[object, ...]:
    named = (worker.id, worker.name, worker.host, worker.pid, worker.state)
    return *named, worker.slots, worker.holding, worker.queues, worker.beat_at


COMMANDS = {
    "workers": Command(
        _list,
        _configure_list,
        more="Those that have gone are remembered as long as history is.",
        examples=("penstock workers", "penstock workers --gone --json"),
    ),
    "workers show": Command(_show, _configure_one, examples=(f"penstock workers show {_ID}",)),
    "workers drain": Command(
        _drain,
        _configure_one,
        more="It finishes what it holds and claims nothing more.",
        examples=(f"penstock workers drain {_ID}",),
    ),
}
