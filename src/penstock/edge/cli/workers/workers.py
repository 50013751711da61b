"""`penstock workers`: list, show and drain workers."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from penstock.edge.cli.kit.command import ServerCommand, argument, flag, listing
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.view import View

if TYPE_CHECKING:
    from penstock.client.remote.server import Remote

_WORKER = View(
    "id name host pid state slots holding queues beat_at:last_beat",
    state=lambda worker: f"{worker.state}, silent" if worker.is_silent else worker.state,
)
_MORE = View("kinds labels registered_at alive_until ended_at")
_LEASES = View("id:message queue kind attempts leased_at leased_until:until")
_ID = "01ba4e95-8a00-7cc4-a3ba-2b1d1c5f8e11"


_ONE = argument("ID", "id of the worker, from the list")


def _show(server: Remote, args: Namespace, out: Output) -> None:
    worker = server.workers.get(args.id)
    out.show(worker, (_WORKER + _MORE).lines(worker), _LEASES.table(worker.leases or ()))


def _drain(server: Remote, args: Namespace, out: Output) -> None:
    worker = server.workers.drain(args.id)
    text = f"{worker.id} is {worker.state}; the worker learns of it with its next beat"
    out.result(worker, text)


COMMANDS = {
    "workers": ServerCommand(
        listing(_WORKER, lambda server, args: server.workers.list(gone=args.gone)),
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
