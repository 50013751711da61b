"""`penstock circuits`: how they are, closing and opening them, and the settings of the breaker."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import msgspec

from penstock.api.circuit_settings import CircuitSettings
from penstock.api.circuits import Circuit
from penstock.client.nouns.circuits import CircuitClient
from penstock.domain.circuit.settings import BreakerSettings
from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.exits import UsageError
from penstock.edge.cli.kit.flags import pair, remote, server_flags
from penstock.edge.cli.kit.output import Output, shown
from penstock.edge.cli.kit.parser import Parser
from penstock.edge.cli.registry import Command

COLUMNS = ("hash", "state", "fail ratio", "held", "forced", "opened", "pattern")
_HASH = "0c1d2e3f405162738495a6b7c8d9eafb"


def _configure_one(parser: Parser) -> None:
    parser.argument("HASH", "hash of the circuit, as the list shows it")
    server_flags(parser)


def _configure_close(parser: Parser) -> None:
    parser.argument("HASH", "hash of the circuit, as the list shows it", nargs="?")
    parser.flag("--all", text="all that are open or half-open", action="store_true")
    server_flags(parser)


def _configure_unhold(parser: Parser) -> None:
    parser.argument("HASH", "hash of the circuit, as the list shows it", nargs="?")
    parser.flag("--all", text="the queues of all circuits", action="store_true")
    server_flags(parser)


def _configure_settings(parser: Parser) -> None:
    parser.argument("HASH", "hash of a circuit; default: the defaults of all", nargs="?")
    parser.flag("--route", value="ROUTE", text="the circuit of this route, also one never used")
    server_flags(parser)


def _configure_set(parser: Parser) -> None:
    parser.argument(
        "SETTING", "NAME=VALUE, as `penstock circuits settings` names it", nargs="*", type=pair
    )
    parser.flag("--circuit", value="HASH", text="only of this circuit; default: of all")
    parser.flag("--route", value="ROUTE", text="the circuit of this route, also one never used")
    parser.flag("--reset", text="bring all back to their defaults first", action="store_true")
    server_flags(parser)


def _list(args: Namespace, out: Output) -> int:
    with remote(args) as server:
        found = server.circuits.list()
    if out.json:
        for circuit in found:
            out.record(circuit)
    else:
        out.table(COLUMNS, map(_row, found))
    return exits.OK


def _show(args: Namespace, out: Output) -> int:
    with remote(args) as server:
        return _shown(server.circuits.get(args.hash), out)


def _open(args: Namespace, out: Output) -> int:
    with remote(args) as server:
        return _shown(server.circuits.open(args.hash), out)


def _close(args: Namespace, out: Output) -> int:
    _check_one_or_all(args)
    with remote(args) as server:
        if not args.all:
            return _shown(server.circuits.close(args.hash), out)
        closed = server.circuits.close_all()
    return _counted("closed", closed, out)


def _unhold(args: Namespace, out: Output) -> int:
    _check_one_or_all(args)
    with remote(args) as server:
        circuits = server.circuits
        unheld = circuits.unhold_all() if args.all else circuits.unhold(args.hash)
    return _counted("unheld", unheld, out)


def _check_one_or_all(args: Namespace) -> None:
    if (args.hash is None) != args.all:
        raise UsageError("name one circuit, or say --all")


def _counted(name: str, count: int, out: Output) -> int:
    if out.json:
        out.record({name: count})
    else:
        out.line(f"{count} {name}")
    return exits.OK


def _settings(args: Namespace, out: Output) -> int:
    with remote(args) as server:
        if _is_for_one(args.hash, args.route):
            return _shown_own(server.circuits.own_settings(args.hash, route=args.route), out)
        shown = _shown_settings(server.circuits.settings(), out)
        own = server.circuits.all_own_settings()
    if own and not out.json:
        out.line()
        out.table(("circuit", "overrides", "route"), map(_own_row, own))
    return shown


def _set(args: Namespace, out: Output) -> int:
    changes = _changes(args.setting)
    with remote(args) as server:
        circuits = server.circuits
        if _is_for_one(args.circuit, args.route):
            return _shown_own(_set_own(circuits, changes, args), out)
        if args.reset:
            circuits.reset_settings()
        if changes:
            return _shown_settings(circuits.change_settings(changes), out)
        return _shown_settings(circuits.settings(), out)


def _set_own(circuits: CircuitClient, changes: dict[str, Any], args: Namespace) -> CircuitSettings:
    if not args.reset:
        return circuits.change_own_settings(changes, args.circuit, route=args.route)
    if changes:
        return circuits.put_own_settings(changes, args.circuit, route=args.route)
    return circuits.reset_own_settings(args.circuit, route=args.route)


def _is_for_one(circuit: str | None, route: str | None) -> bool:
    if circuit is not None and route is not None:
        raise UsageError("name a circuit or a route, not both")
    return circuit is not None or route is not None


def _changes(pairs: list[tuple[str, str]]) -> dict[str, Any]:
    """A part of a setting is named with a dot: open_to_half_open.enabled=true."""
    changes: dict[str, Any] = {}
    for name, text in pairs:
        whole, dot, part = name.partition(".")
        if dot:
            parts = changes.get(whole)
            changes[whole] = {**(parts if isinstance(parts, dict) else {}), part: _value(text)}
        else:
            changes[name] = _value(text)
    return changes


def _value(text: str) -> object:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return text  # the server says what it should have been


def _shown(circuit: Circuit, out: Output) -> int:
    if out.json:
        out.record(circuit)
        return exits.OK
    more = [
        ("awaiting unhold", circuit.awaiting_unhold or None),
        ("reopened", circuit.reopened),
        ("metric name", circuit.metric_name),
        ("held queues", ", ".join(circuit.held_queues or ())),
    ]
    out.fields([*zip(COLUMNS, _row(circuit), strict=True), *more])
    return exits.OK


def _shown_settings(settings: BreakerSettings, out: Output) -> int:
    if out.json:
        out.record(settings)
        return exits.OK
    out.fields(_lines(settings))
    return exits.OK


def _shown_own(own: CircuitSettings, out: Output) -> int:
    if out.json:
        out.record(own)
        return exits.OK
    overridden = own.overrides.values()
    out.fields([("circuit", own.circuit), ("route", own.route)])
    out.line()
    out.fields(
        (name, f"{shown(value)}  (override)" if name in overridden else value)
        for name, value in _lines(own.settings)
    )
    return exits.OK


def _own_row(own: CircuitSettings) -> tuple[object, ...]:
    texts = (f"{name}={shown(value) or 'none'}" for name, value in own.overrides.values().items())
    return own.circuit, " ".join(texts), own.route


def _lines(settings: BreakerSettings) -> list[tuple[str, object]]:
    lines: list[tuple[str, object]] = []
    for name, value in msgspec.to_builtins(settings).items():
        if isinstance(value, dict):
            lines += [(f"{name}.{part}", of_part) for part, of_part in value.items()]
        else:
            lines.append((name, value))
    return lines


def _row(circuit: Circuit) -> tuple[object, ...]:
    how = (circuit.state, f"{circuit.fail_ratio} %", circuit.held, circuit.is_forced)
    return circuit.hash, *how, circuit.opened_at, circuit.pattern


COMMANDS = {
    "circuits": Command(
        _list, server_flags, examples=("penstock circuits", "penstock circuits --json")
    ),
    "circuits show": Command(_show, _configure_one, examples=(f"penstock circuits show {_HASH}",)),
    "circuits close": Command(
        _close,
        _configure_close,
        more="Samples are forgotten. Queues that were held are let go one after the other, as the "
        "settings of the breaker say.",
        examples=(f"penstock circuits close {_HASH}", "penstock circuits close --all"),
    ),
    "circuits unhold": Command(
        _unhold,
        _configure_unhold,
        more="All at once, whatever the settings of the breaker say; pauses stay. Queues of a "
        "circuit that is open are held again with their next request: close it first.",
        examples=(f"penstock circuits unhold {_HASH}", "penstock circuits unhold --all"),
    ),
    "circuits open": Command(
        _open,
        _configure_one,
        more="No delivery of it is tried until somebody closes it.",
        examples=(f"penstock circuits open {_HASH}",),
    ),
    "circuits settings": Command(
        _settings,
        _configure_settings,
        more="Those of all circuits, and which circuits override some; or those of one circuit.",
        examples=(
            "penstock circuits settings",
            f"penstock circuits settings {_HASH}",
            "penstock circuits settings --route stripe",
        ),
    ),
    "circuits set": Command(
        _set,
        _configure_set,
        more="For one circuit, settings take the place of the defaults; the tasks and the pace of "
        "unholding are the same for all.",
        examples=(
            "penstock circuits set circuit_check_enabled=true error_threshold_percentage=80",
            "penstock circuits set open_to_half_open.enabled=true single_probe=true",
            "penstock circuits set --reset",
            "penstock circuits set --route stripe error_threshold_percentage=50",
            f"penstock circuits set --circuit {_HASH} --reset",
        ),
    ),
}
