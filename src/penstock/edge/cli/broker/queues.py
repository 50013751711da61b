"""`penstock queues`: list and show queues, pause and resume them."""

from __future__ import annotations

from argparse import Namespace

import msgspec

from penstock.api.queues import ListQueues, Queue
from penstock.domain.duration import duration_text
from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.flags import remote, server_flags
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.parser import Parser
from penstock.edge.cli.kit.record_flags import RecordFlags
from penstock.edge.cli.registry import Command
from penstock.settings.text import size_text

_FILTERS = RecordFlags(ListQueues, "prefix contains dead_letter_queue")


def queue_argument(parser: Parser) -> None:
    parser.argument("QUEUE", "name of the queue")
    server_flags(parser)


def show(queue: Queue, out: Output) -> int:
    """Show a queue with its counts, totals and settings."""
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
    """The queue for JSON: fields without a value are null."""
    fields = msgspec.structs.asdict(queue)
    return {name: None if value is msgspec.UNSET else value for name, value in fields.items()}


def _setting(name: str, value: object) -> object:
    if isinstance(value, int) and name.endswith("_ms"):
        return duration_text(value)
    if isinstance(value, int) and name.endswith("_bytes"):
        return size_text(value)
    return "none" if value is None else value


def _configure_list(parser: Parser) -> None:
    _FILTERS.add(parser)
    server_flags(parser)


def _list(args: Namespace, out: Output) -> int:
    with remote(args) as server:
        queues = server.queues.list(**_FILTERS.values(args))
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
            f"circuit {queue.held_by} holds it; release it: penstock queues unhold {queue.name}"
        )
    return exits.OK


COMMANDS = {
    "queues": Command(
        _list,
        _configure_list,
        more="With the number of ready, waiting, leased, dead and done messages.",
        examples=("penstock queues", "penstock queues --prefix mail. --json"),
    ),
    "queues show": Command(_show, queue_argument, examples=("penstock queues show mail",)),
    "queues pause": Command(
        _pause,
        queue_argument,
        more="Existing leases stay valid and can be completed.",
        examples=("penstock queues pause mail",),
    ),
    "queues resume": Command(
        _resume,
        queue_argument,
        more="A queue that a circuit holds stays held; see `penstock queues unhold`.",
        examples=("penstock queues resume mail",),
    ),
    "queues unhold": Command(
        _unhold,
        queue_argument,
        more="A paused queue stays paused. While the circuit is open, the next request of the "
        "queue is held again: close the circuit to prevent that.",
        examples=("penstock queues unhold mail",),
    ),
}
