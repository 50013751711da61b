"""`penstock workers`: list, show and drain workers."""

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
    parser.flag("--gone", text="also workers that left or were lost", action="store_true")
    server_flags(parser)


def _configure_one(parser: Parser) -> None:
    parser.argument("ID", "id of the worker, from the list")
    server_flags(parser)


def _list(args: Namespace, out: Output) -> int:
    with remote(args) as server:
        return out.records(server.workers.list(gone=args.gone), COLUMNS, _row)


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
    return out.result(
        worker, f"{worker.id} is {worker.state}; the worker learns of it with its next beat"
    )


def _row(worker: Worker) -> tuple[object, ...]:
    named = (worker.id, worker.name, worker.host, worker.pid, worker.state)
    return *named, worker.slots, worker.holding, worker.queues, worker.beat_at


COMMANDS = {
    "workers": Command(
        _list,
        _configure_list,
        more="Workers that left or were lost are listed as long as the history is kept.",
        examples=("penstock workers", "penstock workers --gone --json"),
    ),
    "workers show": Command(_show, _configure_one, examples=(f"penstock workers show {_ID}",)),
    "workers drain": Command(
        _drain,
        _configure_one,
        more="The worker finishes its leases, claims no more and exits.",
        examples=(f"penstock workers drain {_ID}",),
    ),
}
