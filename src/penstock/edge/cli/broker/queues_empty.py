"""`penstock queues purge`, `redrive` and `delete`: what may take a while."""

from __future__ import annotations

from argparse import Namespace

from penstock.edge.cli.broker.queues import named
from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.flags import remote, server_flags
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.parser import Parser
from penstock.edge.cli.kit.progress import progress
from penstock.edge.cli.registry import Command


def _configure_redrive(parser: Parser) -> None:
    parser.argument("QUEUE", "where the dead messages are")
    parser.flag("--limit", value="N", text="how many at most; default: all", type=int)
    parser.flag("--to", value="QUEUE", text="where they go; default: where they died")
    server_flags(parser)


def _configure_delete(parser: Parser) -> None:
    parser.argument("QUEUE", "name of the queue")
    parser.flag("--force", text="also if it holds messages; they are cancelled")
    server_flags(parser)


def _purge(args: Namespace, out: Output) -> int:
    with remote(args) as server, progress(f"Purging {args.queue}"):
        cancelled = server.queues.purge(args.queue)
    return _told({"cancelled": cancelled}, f"{cancelled} cancelled", out)


def _redrive(args: Namespace, out: Output) -> int:
    with remote(args) as server, progress(f"Redriving {args.queue}"):
        redriven = server.queues.redrive(args.queue, limit=args.limit, to=args.to)
    return _told({"redriven": redriven}, f"{redriven} redriven", out)


def _delete(args: Namespace, out: Output) -> int:
    with remote(args) as server, progress(f"Removing {args.queue}"):
        server.queues.delete(args.queue, force=args.force)
    return _told({"removed": args.queue}, f"{args.queue} is removed", out)


def _told(record: object, line: str, out: Output) -> int:
    if out.json:
        out.record(record)
    else:
        out.line(line)
    return exits.OK


COMMANDS = {
    "queues purge": Command(
        _purge,
        named,
        more="Messages in every state are cancelled and stand in the history; leases are lost.",
        examples=("penstock queues purge mail --timeout 10m",),
    ),
    "queues redrive": Command(
        _redrive,
        _configure_redrive,
        more="Dead messages get all their attempts anew, in the queue they died in or in another.",
        examples=("penstock queues redrive mail.dead", "penstock queues redrive mail --limit 10"),
    ),
    "queues delete": Command(
        _delete,
        _configure_delete,
        more="What it has finished stays in the history.",
        examples=("penstock queues delete mail --force",),
    ),
}
