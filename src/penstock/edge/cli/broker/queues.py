"""`penstock queues`: looking at queues, pausing and resuming them."""

from __future__ import annotations

from argparse import Namespace

import msgspec

from penstock.api.queues import Queue
from penstock.domain.duration import duration_text
from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.flags import remote, server_flags
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.parser import Parser
from penstock.edge.cli.registry import Command
from penstock.settings.units import size_text


def named(parser: Parser) -> None:
    parser.argument("QUEUE", "name of the queue")
    server_flags(parser)


def show(queue: Queue, out: Output) -> int:
    """A queue with everything about it."""
    if out.json:
        out.record(document(queue))
        return exits.OK
    counts, totals = queue.counts, queue.totals
    out.fields(
        [
            ("name", queue.name),
            ("paused", queue.is_paused),
            ("held by", queue.held_by or None),
            ("created", queue.created_at),
            ("oldest ready", queue.oldest_ready_at or None),
        ]
    )
    out.line()
    out.fields((name, getattr(counts, name)) for name in counts.__struct_fields__)
    out.line()
    out.fields((f"total {name}", getattr(totals, name)) for name in totals.__struct_fields__)
    out.line()
    values = msgspec.structs.asdict(queue.settings)
    out.fields((name, _setting(name, value)) for name, value in values.items())
    return exits.OK


def document(queue: Queue) -> dict[str, object]:
    """For JSON: fields without a value are null, as scripts know them."""
    fields = msgspec.structs.asdict(queue)
    return {name: None if value is msgspec.UNSET else value for name, value in fields.items()}


def _setting(name: str, value: object) -> object:
    if isinstance(value, int) and name.endswith("_ms"):
        return duration_text(value)
    if isinstance(value, int) and name.endswith("_bytes"):
        return size_text(value)
    return "none" if value is None else value


def _configure_list(parser: Parser) -> None:
    parser.flag("--prefix", value="TEXT", text="only those whose name begins with it", default="")
    parser.flag("--contains", value="TEXT", text="only those with this in their name", default="")
    parser.flag(
        "--dead-letter-queue", value="QUEUE", text="only those whose dead messages go to this queue"
    )
    server_flags(parser)


def _list(args: Namespace, out: Output) -> int:
    with remote(args) as server:
        queues = server.queues.list(
            prefix=args.prefix,
            contains=args.contains,
            dead_letter_queue=args.dead_letter_queue,
        )
        if out.json:
            for queue in queues:
                out.record(document(queue))
        else:
            out.table(
                ("queue", "ready", "waiting", "leased", "dead", "done", "stopped"),
                map(_row, queues),
            )
    return exits.OK


def _row(queue: Queue) -> tuple[object, ...]:
    counts = queue.counts
    now = (counts.ready, counts.waiting, counts.leased, counts.dead)
    stops = ("paused" if queue.is_paused else "", "held" if queue.held_by else "")
    return queue.name, *now, queue.totals.done, " ".join(filter(None, stops))


def _show(args: Namespace, out: Output) -> int:
    with remote(args) as server:
        return show(server.queues.get(args.queue), out)


def _pause(args: Namespace, out: Output) -> int:
    with remote(args) as server:
        return _show_state(server.queues.pause(args.queue), out)


def _resume(args: Namespace, out: Output) -> int:
    with remote(args) as server:
        return _show_state(server.queues.resume(args.queue), out)


def _unhold(args: Namespace, out: Output) -> int:
    with remote(args) as server:
        return _show_state(server.queues.unhold(args.queue), out)


def _show_state(queue: Queue, out: Output) -> int:
    if out.json:
        out.record(document(queue))
        return exits.OK
    out.line(f"{queue.name} is {'paused' if queue.is_paused else 'not paused'}")
    if queue.held_by:
        out.line(
            f"circuit {queue.held_by} holds it: `penstock queues unhold {queue.name}` ends the hold"
        )
    return exits.OK


COMMANDS = {
    "queues": Command(
        _list,
        _configure_list,
        more="Ready, waiting, leased and dead messages are counted apart.",
        examples=("penstock queues", "penstock queues --prefix mail. --json"),
    ),
    "queues show": Command(_show, named, examples=("penstock queues show mail",)),
    "queues pause": Command(
        _pause,
        named,
        more="Leases that are held go on, and can be completed.",
        examples=("penstock queues pause mail",),
    ),
    "queues resume": Command(
        _resume,
        named,
        more="A circuit may hold the queue all the same; `penstock queues unhold` ends that.",
        examples=("penstock queues resume mail",),
    ),
    "queues unhold": Command(
        _unhold,
        named,
        more="A pause stays. While the circuit is open, the next request of the queue is held "
        "again: close the circuit to end that.",
        examples=("penstock queues unhold mail",),
    ),
}
