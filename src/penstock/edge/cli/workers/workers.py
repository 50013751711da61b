"""`penstock workers`: list, show and drain workers."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from penstock.api.workers import Worker
from penstock.edge.cli.kit.command import ServerCommand, argument, flag
from penstock.edge.cli.kit.output import Output, Table

if TYPE_CHECKING:
    from penstock.client.remote.server import Remote

COLUMNS = ("id", "name", "host", "pid", "state", "slots", "holding", "queues", "last beat")
LEASES = ("message", "queue", "kind", "attempts", "leased", "until")
_ID = "01ba4e95-8a00-7cc4-a3ba-2b1d1c5f8e11"


_ONE = argument("ID", "id of the worker, from the list")


def _list(server: Remote, args: Namespace, out: Output) -> None:
    out.records(server.workers.list(gone=args.gone), COLUMNS, _row)


def _show(server: Remote, args: Namespace, out: Output) -> None:
    worker = server.workers.get(args.id)
    more = [
        ("kinds", worker.kinds),
        ("labels", worker.labels),
        ("registered", worker.registered_at),
        ("alive until", worker.alive_until),
        ("ended", worker.ended_at),
    ]
    leases = [
        (m.id, m.queue, m.kind, m.attempts, m.leased_at, m.leased_until)
        for m in worker.leases or ()
    ]
    facts = [*zip(COLUMNS, _row(worker), strict=True), *more]
    out.show(worker, facts, Table(LEASES, leases))


def _drain(server: Remote, args: Namespace, out: Output) -> None:
    worker = server.workers.drain(args.id)
    text = f"{worker.id} is {worker.state}; the worker learns of it with its next beat"
    out.result(worker, text)


def _row(worker: Worker) -> tuple[object, ...]:
    named = (worker.id, worker.name, worker.host, worker.pid, worker.state)
    return *named, worker.slots, worker.holding, worker.queues, worker.beat_at


COMMANDS = {
    "workers": ServerCommand(
        _list,
        flag("--gone", "also workers that left or were lost"),
        more="Workers that left or were lost are listed as long as the history is kept.",
        examples=("penstock workers", "penstock workers --gone --json"),
    ),
    "workers show": ServerCommand(_show, _ONE, examples=(f"penstock workers show {_ID}",)),
    "workers drain": ServerCommand(
        _drain,
        _ONE,
        more="The worker finishes its leases, claims no more and exits.",
        examples=(f"penstock workers drain {_ID}",),
    ),
}
