"""`penstock circuits`: list, open, close and release them; the settings of the breaker."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import msgspec

from penstock.api.circuits import Circuit, CircuitSettings
from penstock.client.resources.circuits import CircuitClient
from penstock.domain.circuit.settings import BreakerSettings
from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.exits import UsageError
from penstock.edge.cli.kit.flags import pair, remote, server_flags
from penstock.edge.cli.kit.output import Output, display
from penstock.edge.cli.kit.parser import Parser
from penstock.edge.cli.registry import Command

COLUMNS = ("hash", "state", "fail ratio", "held", "forced", "opened", "pattern")
_HASH = "0c1d2e3f405162738495a6b7c8d9eafb"


def _configure_one(parser: Parser) -> None:
    parser.argument("HASH", "hash of the circuit, from the list")
    server_flags(parser)


def _configure_close(parser: Parser) -> None:
    parser.argument("HASH", "hash of the circuit, from the list", nargs="?")
    parser.flag("--all", text="close all that are open or half-open", action="store_true")
    server_flags(parser)


def _configure_unhold(parser: Parser) -> None:
    parser.argument("HASH", "hash of the circuit, from the list", nargs="?")
    parser.flag("--all", text="release the held queues of all circuits", action="store_true")
    server_flags(parser)


def _configure_settings(parser: Parser) -> None:
    parser.argument("HASH", "hash of a circuit; default: the settings that all share", nargs="?")
    parser.flag(
        "--route", value="ROUTE", text="the circuit of this route, even if it was never used"
    )
    server_flags(parser)


def _configure_set(parser: Parser) -> None:
    parser.argument(
        "SETTING", "NAME=VALUE, with a name from `penstock circuits settings`", nargs="*", type=pair
    )
    parser.flag("--circuit", value="HASH", text="only for this circuit; default: for all")
    parser.flag(
        "--route", value="ROUTE", text="the circuit of this route, even if it was never used"
    )
    parser.flag("--reset", text="reset all settings to their defaults first", action="store_true")
    server_flags(parser)


def _list(args: Namespace, out: Output) -> int:
    with remote(args) as server:
        return out.records(server.circuits.list(), COLUMNS, _row)


def _show(args: Namespace, out: Output) -> int:
    with remote(args) as server:
        return _show_circuit(server.circuits.get(args.hash), out)


def _open(args: Namespace, out: Output) -> int:
    with remote(args) as server:
        return _show_circuit(server.circuits.open(args.hash), out)


def _close(args: Namespace, out: Output) -> int:
    _check_one_or_all(args)
    with remote(args) as server:
        if not args.all:
            return _show_circuit(server.circuits.close(args.hash), out)
        closed = server.circuits.close_all()
    return out.result({"closed": closed}, f"{closed} closed")


def _unhold(args: Namespace, out: Output) -> int:
    _check_one_or_all(args)
    with remote(args) as server:
        circuits = server.circuits
        unheld = circuits.unhold_all() if args.all else circuits.unhold(args.hash)
    return out.result({"unheld": unheld}, f"{unheld} unheld")


def _check_one_or_all(args: Namespace) -> None:
    if (args.hash is None) != args.all:
        raise UsageError("give the hash of a circuit, or --all")


def _settings(args: Namespace, out: Output) -> int:
    with remote(args) as server:
        if _is_for_one(args.hash, args.route):
            return _show_own(server.circuits.own_settings(args.hash, route=args.route), out)
        code = _show_settings(server.circuits.settings(), out)
        own = server.circuits.all_own_settings()
    if own and not out.json:
        out.line()
        out.table(("circuit", "overrides", "route"), map(_own_row, own))
    return code


def _set(args: Namespace, out: Output) -> int:
    changes = _changes(args.setting)
    with remote(args) as server:
        circuits = server.circuits
        if _is_for_one(args.circuit, args.route):
            return _show_own(_set_own(circuits, changes, args), out)
        if args.reset:
            circuits.reset_settings()
        if changes:
            return _show_settings(circuits.change_settings(changes), out)
        return _show_settings(circuits.settings(), out)


def _set_own(circuits: CircuitClient, changes: dict[str, Any], args: Namespace) -> CircuitSettings:
    if not args.reset:
        return circuits.change_own_settings(changes, args.circuit, route=args.route)
    if changes:
        return circuits.put_own_settings(changes, args.circuit, route=args.route)
    return circuits.reset_own_settings(args.circuit, route=args.route)


def _is_for_one(circuit: str | None, route: str | None) -> bool:
    if circuit is not None and route is not None:
        raise UsageError("give a circuit or a route, not both")
    return circuit is not None or route is not None


def _changes(pairs: list[tuple[str, str]]) -> dict[str, Any]:
    """Parse changes; nested settings are named with a dot: open_to_half_open.enabled=true."""
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
        return text  # the server reports the expected type


def _show_circuit(circuit: Circuit, out: Output) -> int:
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


def _show_settings(settings: BreakerSettings, out: Output) -> int:
    if out.json:
        out.record(settings)
        return exits.OK
    out.fields(_lines(settings))
    return exits.OK


def _show_own(own: CircuitSettings, out: Output) -> int:
    if out.json:
        out.record(own)
        return exits.OK
    overridden = own.overrides.values()
    out.fields([("circuit", own.circuit), ("route", own.route)])
    out.line()
    out.fields(
        (name, f"{display(value)}  (override)" if name in overridden else value)
        for name, value in _lines(own.settings)
    )
    return exits.OK


def _own_row(own: CircuitSettings) -> tuple[object, ...]:
    texts = (f"{name}={display(value) or 'none'}" for name, value in own.overrides.values().items())
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
        more="Clears their outcome windows. Held queues are released one after the other, at the "
        "rate that the breaker's settings define.",
        examples=(f"penstock circuits close {_HASH}", "penstock circuits close --all"),
    ),
    "circuits unhold": Command(
        _unhold,
        _configure_unhold,
        more="All at once, regardless of the breaker's settings; paused queues stay paused. "
        "Queues of an open circuit are held again with their next request: close it first.",
        examples=(f"penstock circuits unhold {_HASH}", "penstock circuits unhold --all"),
    ),
    "circuits open": Command(
        _open,
        _configure_one,
        more="No delivery of its route is tried until it is closed.",
        examples=(f"penstock circuits open {_HASH}",),
    ),
    "circuits settings": Command(
        _settings,
        _configure_settings,
        more="Shows the shared settings and the overrides of circuits, or the settings of one "
        "circuit.",
        examples=(
            "penstock circuits settings",
            f"penstock circuits settings {_HASH}",
            "penstock circuits settings --route stripe",
        ),
    ),
    "circuits set": Command(
        _set,
        _configure_set,
        more="Settings of one circuit override the shared ones; the tasks and the rate of release "
        "are the same for all circuits.",
        examples=(
            "penstock circuits set circuit_check_enabled=true error_threshold_percentage=80",
            "penstock circuits set open_to_half_open.enabled=true single_probe=true",
            "penstock circuits set --reset",
            "penstock circuits set --route stripe error_threshold_percentage=50",
            f"penstock circuits set --circuit {_HASH} --reset",
        ),
    ),
}
