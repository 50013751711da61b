"""`penstock queues create` and `set`: the settings of a queue as flags."""

from __future__ import annotations

import argparse
from argparse import Namespace
from collections.abc import Callable
from typing import Any

import msgspec

from penstock.domain.errors import QueueExists, QueueNotFound
from penstock.domain.queue.queue import DedupScope, Ordering, Redelivery
from penstock.edge.cli.broker.queues import document, show
from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.exits import UsageError
from penstock.edge.cli.kit.flags import (
    NONE,
    duration,
    or_none,
    pair,
    remote,
    server_flags,
    size,
    switch,
)
from penstock.edge.cli.kit.limit_flags import limit_flags
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.parser import Parser
from penstock.edge.cli.registry import Command

BACKOFF_FORM = "fixed:10s, list:1s,10s,5m or exponential:1s,2,1h,0.2 (first, factor, most, jitter)"

# Flag on the command line, setting of the queue.
SETTINGS = {
    "lease": "lease_ms",
    "delay": "delay_ms",
    "retention": "retention_ms",
    "max_attempts": "max_attempts",
    "max_crashes": "max_crashes",
    "dead_letter_queue": "dead_letter_queue",
    "ordering": "ordering",
    "redelivery": "redelivery",
    "backoff": "backoff",
    "max_body": "max_body_bytes",
    "max_messages": "max_messages",
    "dedup_window": "dedup_window_ms",
    "dedup_by_content": "dedup_by_content",
    "dedup_scope": "dedup_scope",
    "wait": "wait_ms",
    "label": "labels",
    "max_leased": "max_leased",
    "max_leased_per_group": "max_leased_per_group",
    "rate": "rate",
    "rate_per_group": "rate_per_group",
    "fair": "is_fair",
    "weight": "weights",
}
_PAIRS = ("labels", "weights")  # given one by one

_EXPONENTIAL: dict[str, Callable[[str], float]] = {
    "first_ms": duration,
    "factor": float,
    "max_ms": duration,
    "jitter": float,
}


def _configure_create(parser: Parser) -> None:
    parser.argument("QUEUE", "name of the new queue")
    parser.flag("--replace", text="if it is there already, give it these settings")
    _settings_flags(parser)


def _configure_set(parser: Parser) -> None:
    parser.argument("QUEUE", "name of the queue")
    _settings_flags(parser)


def _settings_flags(parser: Parser) -> None:
    parser.flag("--lease", value="DURATION", text="how long a claim lasts; 30s", type=duration)
    parser.flag("--delay", value="DURATION", text="of every message sent; 0s", type=duration)
    parser.flag(
        "--retention", value="DURATION", text="cancelled after that; none", type=or_none(duration)
    )
    parser.flag(
        "--max-attempts", value="N", text="dead after so many; 5, or none", type=or_none(int)
    )
    parser.flag(
        "--max-crashes",
        value="N",
        text="set aside after so many dead workers; 3, or none",
        type=or_none(int),
    )
    parser.flag(
        "--dead-letter-queue", value="QUEUE", text="where dead ones go; none", type=or_none(str)
    )
    parser.flag(
        "--ordering",
        value="ORDER",
        text="standard, or group: strictly in order within a group",
        choices=[str(order) for order in Ordering],
    )
    parser.flag(
        "--redelivery",
        value="END",
        text="where a message comes back: front or back",
        choices=[str(end) for end in Redelivery],
    )
    parser.flag(
        "--backoff", value="BACKOFF", text=f"wait after a failure: {BACKOFF_FORM}", type=_backoff
    )
    parser.flag("--max-body", value="SIZE", text="of one body; none", type=or_none(size))
    parser.flag("--max-messages", value="N", text="refuse more than that; none", type=or_none(int))
    parser.flag(
        "--dedup-window",
        value="DURATION",
        text="how long dedup keys are remembered; 5m",
        type=duration,
    )
    parser.flag(
        "--dedup-by-content",
        value="YES/NO",
        text="a message without a dedup key gets one made of its body; no",
        type=switch,
    )
    parser.flag(
        "--dedup-scope",
        value="SCOPE",
        text="a dedup key counts in the whole queue or in its group; queue",
        choices=[str(scope) for scope in DedupScope],
    )
    parser.flag(
        "--wait",
        value="DURATION",
        text="of a claim that does not say; none",
        type=or_none(duration),
    )
    parser.flag(
        "--label",
        value="NAME=VALUE",
        text="one of its labels, may be repeated; none takes all away",
        action="append",
        type=or_none(pair),
    )
    limit_flags(parser)
    server_flags(parser)


def _create(args: Namespace, out: Output) -> int:
    with remote(args) as server:
        if not args.replace:
            try:
                server.queues.get(args.queue)
            except QueueNotFound:
                pass
            else:
                raise QueueExists(f"there is a queue {args.queue!r} already; --replace changes it")
        queue = server.queues.put(args.queue, _wanted(args), only_new=not args.replace)
    if out.json:
        out.record(document(queue))
    else:
        out.line(f"{queue.name} is there")
    return exits.OK


def _set(args: Namespace, out: Output) -> int:
    changes = _wanted(args)
    if not changes:
        raise UsageError("nothing to set; see penstock queues set --help")
    with remote(args) as server:
        return show(server.queues.patch(args.queue, changes), out)


def _wanted(args: Namespace) -> dict[str, Any]:
    given = {setting: getattr(args, flag) for flag, setting in SETTINGS.items()}
    wanted = {name: value for name, value in given.items() if value is not None}
    for name in _PAIRS:
        if name in wanted:
            wanted[name] = dict(pair for pair in wanted[name] if pair != NONE)
    return {name: None if value == NONE else value for name, value in wanted.items()}


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
                return {"type": name, **{key: read(part) for (key, read), part in shape}}
    except ValueError:
        pass
    if text.startswith("{"):
        try:
            return dict(msgspec.json.decode(text))
        except (msgspec.DecodeError, ValueError):
            pass
    raise argparse.ArgumentTypeError(f"{text!r} is not {BACKOFF_FORM}")


COMMANDS = {
    "queues create": Command(
        _create,
        _configure_create,
        more="What is not given has the default that stands beside the flag.",
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
        more="Settings that are not given stay as they are.",
        examples=(
            "penstock queues set mail --lease 5m",
            "penstock queues set mail --max-attempts none --backoff exponential:1s,2,1h",
        ),
    ),
}
