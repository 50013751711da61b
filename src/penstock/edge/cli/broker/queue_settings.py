"""`penstock queues create` and `set`: the settings of a queue as flags."""

from __future__ import annotations

import argparse
from argparse import Namespace
from collections.abc import Callable
from typing import Any

import msgspec

from penstock.domain.errors import QueueExists, QueueNotFound
from penstock.domain.queue.queue import QueueSettings
from penstock.edge.cli.broker.queues import document, show
from penstock.edge.cli.kit.exits import UsageError
from penstock.edge.cli.kit.flags import duration, remote, server_flags
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.parser import Parser
from penstock.edge.cli.kit.record_flags import Form, RecordFlags
from penstock.edge.cli.registry import Command

BACKOFF_FORM = "fixed:10s, list:1s,10s,5m or exponential:1s,2,1h,0.2 (first, factor, most, jitter)"
RATE_FORM = "LIMIT/TIME or LIMIT/TIME,BURST, as in 10/1s or 600/1m,50"

_EXPONENTIAL: dict[str, Callable[[str], float]] = {
    "first_ms": duration,
    "factor": float,
    "max_ms": duration,
    "jitter": float,
}


def _configure_create(parser: Parser) -> None:
    parser.argument("QUEUE", "name of the new queue")
    parser.flag("--replace", text="replace the settings of a queue that exists already")
    _SETTINGS.add(parser)
    server_flags(parser)


def _configure_set(parser: Parser) -> None:
    parser.argument("QUEUE", "name of the queue")
    _SETTINGS.add(parser)
    server_flags(parser)


def _create(args: Namespace, out: Output) -> int:
    with remote(args) as server:
        if not args.replace:
            try:
                server.queues.get(args.queue)
            except QueueNotFound:
                pass
            else:
                raise QueueExists(f"queue {args.queue!r} exists already; --replace changes it")
        settings = _SETTINGS.values(args)
        queue = server.queues.put(args.queue, settings, only_new=not args.replace)
    return out.result(document(queue), f"created {queue.name}")


def _set(args: Namespace, out: Output) -> int:
    changes = _SETTINGS.values(args)
    if not changes:
        raise UsageError("no setting is given; see penstock queues set --help")
    with remote(args) as server:
        return show(server.queues.patch(args.queue, changes), out)


def _backoff(text: str) -> dict[str, Any]:
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


def _rate(text: str) -> dict[str, Any]:
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
        "backoff": Form("BACKOFF", _backoff, BACKOFF_FORM),
        "rate": Form("RATE", _rate, RATE_FORM),
        "rate_per_group": Form("RATE", _rate),
        "weights": Form("GROUP=N", _weight),
    },
    is_patch=True,
)

COMMANDS = {
    "queues create": Command(
        _create,
        _configure_create,
        more="A setting that is not given has its default.",
        examples=(
            "penstock queues create mail",
            "penstock queues create mail --lease 2m --dead-letter-queue mail.dead",
            "penstock queues create orders --ordering group --backoff list:1s,10s,1m",
            "penstock queues create calls --max-leased-per-group 2 --rate-per-group 10/1s,20",
            "penstock queues create jobs --fair yes --weight acme=3",
        ),
    ),
    "queues set": Command(
        _set,
        _configure_set,
        more="A setting that is not given stays as it is; `none` unsets one.",
        examples=(
            "penstock queues set mail --lease 5m",
            "penstock queues set mail --max-attempts none --backoff exponential:1s,2,1h",
        ),
    ),
}
