"""`penstock queues`: list, show, create, change, pause, empty and delete queues."""

from __future__ import annotations

import argparse
from argparse import Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.api.queues import ListQueues, Queue, Redrive
from penstock.domain.duration import duration_text
from penstock.domain.errors import QueueExists, QueueNotEmpty, QueueNotFound
from penstock.domain.queue.queue import QueueSettings
from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.command import ServerCommand, argument, flag
from penstock.edge.cli.kit.confirmation import cancel_flags, may_change
from penstock.edge.cli.kit.exits import UsageError
from penstock.edge.cli.kit.flags import duration
from penstock.edge.cli.kit.output import Output, fields_of
from penstock.edge.cli.kit.progress import progress
from penstock.edge.cli.kit.record_flags import Form, RecordFlags
from penstock.edge.cli.kit.view import View
from penstock.settings.text import size_text

if TYPE_CHECKING:
    from penstock.client.remote.server import Remote

_QUEUE = argument("QUEUE", "name of the queue")
_FILTERS = RecordFlags(
    ListQueues,
    "prefix contains dead_letter_queue problem state label sort ascending",
    texts={
        "state": "only queues with messages in this state: ready, waiting, leased or dead",
        "sort": "by name (default), or by ready, waiting, leased, dead, sent, done or failed, the "
        "largest first",
        "ascending": "with --sort: the smallest number first",
    },
)
_REDRIVE = RecordFlags(Redrive, "limit to")
_FACTS = View(
    "name is_paused held_by created_at oldest_ready_at",
    held_by=lambda queue: queue.held_by or None,
    oldest_ready_at=lambda queue: queue.oldest_ready_at or None,
)
BACKOFF_FORM = "fixed:10s, list:1s,10s,5m or exponential:1s,2,1h,0.2 (first, factor, max, jitter)"
RATE_FORM = "LIMIT/TIME or LIMIT/TIME,BURST, as in 10/1s or 600/1m,50"

_EXPONENTIAL: dict[str, Callable[[str], float]] = {
    "first_ms": duration,
    "factor": float,
    "max_ms": duration,
    "jitter": float,
}


def show(queue: Queue, out: Output) -> None:
    """Show a queue with its counts, totals and settings."""
    settings = [(name, _setting(name, value)) for name, value in fields_of(queue.settings)]
    out.show(
        _document(queue),
        _FACTS.lines(queue),
        fields_of(queue.counts),
        fields_of(queue.totals, "total "),
        settings,
    )


def _document(queue: Queue) -> dict[str, object]:
    """The queue for JSON: fields without a value are null."""
    fields = msgspec.structs.asdict(queue)
    return {name: None if value is msgspec.UNSET else value for name, value in fields.items()}


def _setting(name: str, value: object) -> object:
    if isinstance(value, int) and name.endswith("_ms"):
        return duration_text(value)
    if isinstance(value, int) and name.endswith("_bytes"):
        return size_text(value)
    return "none" if value is None else value


def _list(server: Remote, args: Namespace, out: Output) -> None:
    queues = server.queues.list(**_FILTERS.values(args))
    if out.json:
        for queue in queues:
            out.record(_document(queue))
    else:
        out.table(*_LISTED.table(queues))


def _stops(queue: Queue) -> str:
    stops = ("paused" if queue.is_paused else "", "held" if queue.held_by else "")
    return " ".join(filter(None, stops))


_LISTED = View(
    "name:queue counts.ready counts.waiting counts.leased counts.dead totals.done stopped",
    stopped=_stops,
)


def _create(server: Remote, args: Namespace, out: Output) -> None:
    if not args.replace:
        try:
            server.queues.get(args.queue)
        except QueueNotFound:
            pass
        else:
            raise QueueExists(f"queue {args.queue!r} exists already; --replace changes it")
    queue = server.queues.put(args.queue, _SETTINGS.values(args), only_new=not args.replace)
    out.result(_document(queue), f"created {queue.name}")


def _set(server: Remote, args: Namespace, out: Output) -> None:
    changes = _SETTINGS.values(args)
    if not changes:
        raise UsageError("no setting is given; see penstock queues set --help")
    show(server.queues.patch(args.queue, changes), out)


def _show_state(queue: Queue, out: Output) -> None:
    out.result(_document(queue), f"{queue.name} is {'paused' if queue.is_paused else 'not paused'}")
    if queue.held_by and not out.json:
        out.line(
            f"circuit {queue.held_by} holds it; release it: penstock queues unhold {queue.name}"
        )


def _purge(server: Remote, args: Namespace, out: Output) -> int:
    def count() -> int:
        return _message_count(server, args.queue)

    if args.dry_run:
        out.result({"would_cancel": (found := count())}, f"would cancel {found}")
        return exits.OK
    if not may_change(args, lambda: f"Cancel {count()} messages of {args.queue}?"):
        return exits.REFUSED
    with progress(f"Purging {args.queue}"):
        cancelled = server.queues.purge(args.queue)
    out.result({"cancelled": cancelled}, f"{cancelled} cancelled")
    return exits.OK


def _message_count(server: Remote, queue: str) -> int:
    return sum(msgspec.structs.astuple(server.queues.get(queue).counts))


def _redrive(server: Remote, args: Namespace, out: Output) -> None:
    with progress(f"Redriving {args.queue}"):
        redriven = server.queues.redrive(args.queue, **_REDRIVE.values(args))
    out.result({"redriven": redriven}, f"{redriven} redriven")


def _delete(server: Remote, args: Namespace, out: Output) -> int:
    def count() -> int:
        return _message_count(server, args.queue)

    if args.dry_run:
        _show_deletion(args, count(), out)
        return exits.OK
    question = f"messages and delete {args.queue}?"
    if args.force and not may_change(args, lambda: f"Cancel {count()} {question}"):
        return exits.REFUSED
    with progress(f"Deleting {args.queue}"):
        server.queues.delete(args.queue, force=args.force)
    out.result({"removed": args.queue}, f"{args.queue} is deleted")
    return exits.OK


def _show_deletion(args: Namespace, count: int, out: Output) -> None:
    if count and not args.force:
        raise QueueNotEmpty(f"queue {args.queue!r} has {count} messages; --force cancels them")
    out.result(
        {"would_remove": args.queue, "would_cancel": count},
        f"would delete {args.queue} and cancel {count}",
    )


def parse_backoff(text: str) -> dict[str, Any]:
    name, _, rest = text.partition(":")
    parts = [part.strip() for part in rest.split(",") if part.strip()]
    try:
        match name, parts:
            case "fixed", [delay]:
                return {"type": name, "delay_ms": duration(delay)}
            case "list", [_, *_]:
                return {"type": name, "delays_ms": [duration(part) for part in parts]}
            case "exponential", _ if len(parts) <= 4:
                shape = zip(_EXPONENTIAL.items(), parts, strict=False)
                return {"type": name, **{key: parse(part) for (key, parse), part in shape}}
    except ValueError:
        pass
    if text.startswith("{"):
        try:
            return dict(msgspec.json.decode(text))
        except (msgspec.DecodeError, ValueError):
            pass
    raise argparse.ArgumentTypeError(f"{text!r} is not {BACKOFF_FORM}")


def parse_rate(text: str) -> dict[str, Any]:
    per_time, _, burst = text.partition(",")
    limit, sign, time = per_time.partition("/")
    try:
        if not sign:
            raise ValueError(text)
        rate = {"limit": int(limit), "per_ms": duration(time)}
        return rate | ({"burst": int(burst)} if burst else {})
    except (ValueError, argparse.ArgumentTypeError):
        raise argparse.ArgumentTypeError(f"{text!r} is not {RATE_FORM}") from None


def _weight(text: str) -> tuple[str, int]:
    group, sign, number = text.rpartition("=")
    if not sign or not number.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not GROUP=N")
    return group, int(number)


_SETTINGS = RecordFlags(
    QueueSettings,
    "lease_ms delay_ms retention_ms max_attempts max_crashes dead_letter_queue ordering redelivery "
    "backoff max_body_bytes max_messages dedup_window_ms dedup_by_content dedup_scope wait_ms "
    "labels:label max_leased max_leased_per_group rate rate_per_group is_fair weights:weight",
    forms={
        "backoff": Form("BACKOFF", parse_backoff, BACKOFF_FORM),
        "rate": Form("RATE", parse_rate, RATE_FORM),
        "rate_per_group": Form("RATE", parse_rate),
        "weights": Form("GROUP=N", _weight),
    },
    is_patch=True,
)

COMMANDS = {
    "queues": ServerCommand(
        _list,
        _FILTERS.add,
        more="With the number of ready, waiting, leased, dead and done messages.",
        examples=(
            "penstock queues --problem dead",
            "penstock queues --prefix mail. --label team=mail --sort ready --json",
        ),
    ),
    "queues show": ServerCommand(
        lambda server, args, out: show(server.queues.get(args.queue), out),
        _QUEUE,
        examples=("penstock queues show mail",),
    ),
    "queues create": ServerCommand(
        _create,
        argument("QUEUE", "name of the new queue"),
        flag("--replace", "replace the settings of a queue that exists already"),
        _SETTINGS.add,
        more="A setting that is not given has its default.",
        examples=(
            "penstock queues create mail",
            "penstock queues create mail --lease 2m --dead-letter-queue mail.dead",
            "penstock queues create orders --ordering group --backoff list:1s,10s,1m",
            "penstock queues create calls --max-leased-per-group 2 --rate-per-group 10/1s,20",
            "penstock queues create jobs --fair yes --weight acme=3",
        ),
    ),
    "queues set": ServerCommand(
        _set,
        _QUEUE,
        _SETTINGS.add,
        more="A setting that is not given stays as it is; `none` unsets one.",
        examples=(
            "penstock queues set mail --lease 5m",
            "penstock queues set mail --max-attempts none --backoff exponential:1s,2,1h",
        ),
    ),
    "queues pause": ServerCommand(
        lambda server, args, out: _show_state(server.queues.pause(args.queue), out),
        _QUEUE,
        more="Existing leases stay valid and can be completed.",
        examples=("penstock queues pause mail",),
    ),
    "queues resume": ServerCommand(
        lambda server, args, out: _show_state(server.queues.resume(args.queue), out),
        _QUEUE,
        more="A queue that a circuit holds stays held; see `penstock queues unhold`.",
        examples=("penstock queues resume mail",),
    ),
    "queues unhold": ServerCommand(
        lambda server, args, out: _show_state(server.queues.unhold(args.queue), out),
        _QUEUE,
        more="A paused queue stays paused. While the circuit is open, the queue is held again "
        "with its next request: close the circuit to prevent that.",
        examples=("penstock queues unhold mail",),
    ),
    "queues purge": ServerCommand(
        _purge,
        _QUEUE,
        cancel_flags,
        more="Cancels messages in every state; they stay in the history, and their leases are "
        "lost. On a terminal it asks for confirmation.",
        examples=(
            "penstock queues purge mail --dry-run",
            "penstock queues purge mail --yes --timeout 10m",
        ),
    ),
    "queues redrive": ServerCommand(
        _redrive,
        argument("QUEUE", "the queue with the dead messages"),
        _REDRIVE.add,
        more="Dead messages get all their attempts again, in the queue they died in or in another.",
        examples=("penstock queues redrive mail.dead", "penstock queues redrive mail --limit 10"),
    ),
    "queues delete": ServerCommand(
        _delete,
        _QUEUE,
        flag("--force", "cancel the messages in it"),
        cancel_flags,
        more="Its finished messages stay in the history. With --force it asks for confirmation on "
        "a terminal.",
        examples=("penstock queues delete mail", "penstock queues delete mail --force --yes"),
    ),
}
