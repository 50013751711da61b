"""`penstock queues purge`, `redrive` and `delete`."""

from __future__ import annotations

from argparse import Namespace

from penstock.api.queues import Redrive
from penstock.edge.cli.broker.queues import queue_argument
from penstock.edge.cli.kit.flags import remote, server_flags
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.parser import Parser
from penstock.edge.cli.kit.progress import progress
from penstock.edge.cli.kit.record_flags import RecordFlags
from penstock.edge.cli.registry import Command

_REDRIVE = RecordFlags(Redrive, "limit to")


def _configure_redrive(parser: Parser) -> None:
    parser.argument("QUEUE", "the queue with the dead messages")
    _REDRIVE.add(parser)
    server_flags(parser)


def _configure_delete(parser: Parser) -> None:
    parser.argument("QUEUE", "name of the queue")
    parser.flag("--force", text="cancel the messages in it")
    server_flags(parser)


def _purge(args: Namespace, out: Output) -> int:
    with remote(args) as server, progress(f"Purging {args.queue}"):
        cancelled = server.queues.purge(args.queue)
    return out.result({"cancelled": cancelled}, f"{cancelled} cancelled")


def _redrive(args: Namespace, out: Output) -> int:
    with remote(args) as server, progress(f"Redriving {args.queue}"):
        redriven = server.queues.redrive(args.queue, **_REDRIVE.values(args))
    return out.result({"redriven": redriven}, f"{redriven} redriven")


def _delete(args: Namespace, out: Output) -> int:
    with remote(args) as server, progress(f"Deleting {args.queue}"):
        server.queues.delete(args.queue, force=args.force)
    return out.result({"removed": args.queue}, f"{args.queue} is deleted")


COMMANDS = {
    "queues purge": Command(
        _purge,
        queue_argument,
        more="Cancels messages in every state; they stay in the history, and their leases are "
        "lost.",
        examples=("penstock queues purge mail --timeout 10m",),
    ),
    "queues redrive": Command(
        _redrive,
        _configure_redrive,
        more="Dead messages get all their attempts again, in the queue they died in or in another.",
        examples=("penstock queues redrive mail.dead", "penstock queues redrive mail --limit 10"),
    ),
    "queues delete": Command(
        _delete,
        _configure_delete,
        more="Its finished messages stay in the history.",
        examples=("penstock queues delete mail --force",),
    ),
}
