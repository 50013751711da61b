"""`penstock routes` and `circuits`: where deliveries go, and whether they may be sent."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.api.circuits import Circuit, CircuitSettings
from penstock.client.resources.circuits import CircuitClient
from penstock.domain.circuit.settings import BreakerSettings
from penstock.domain.duration import duration_text
from penstock.domain.errors import InvalidRequest
from penstock.edge.cli.kit.bodies import read_input
from penstock.edge.cli.kit.command import ServerCommand, argument, flag, listing
from penstock.edge.cli.kit.exits import UsageError
from penstock.edge.cli.kit.flags import pair
from penstock.edge.cli.kit.output import Output, display
from penstock.edge.cli.kit.view import View

if TYPE_CHECKING:
    from penstock.client.remote.server import Remote

_ROUTE_VIEW = View(
    "pattern url methods timeout concurrency is_signed circuit",
    timeout=lambda route: duration_text(route.timeout_ms),
)


def _match(server: Remote, args: Namespace, out: Output) -> None:
    found = server.routes.match(args.uri)
    out.show(found, [("target", found.target), *_ROUTE_VIEW.lines(found.route)])


def _rules(file: str) -> msgspec.Raw:
    """The rules as written, because their order matters."""
    text = read_input(None if file == "-" else file)
    try:
        msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidRequest(
            f"{file} is not a JSON object of patterns and rules: {error}"
        ) from None
    return msgspec.Raw(text.encode())


_CIRCUIT = View(
    "hash state fail_ratio held is_forced opened_at pattern",
    fail_ratio=lambda circuit: f"{circuit.fail_ratio} %",
)
_MORE = View(
    "awaiting_unhold reopened metric_name held_queues",
    awaiting_unhold=lambda circuit: circuit.awaiting_unhold or None,
    held_queues=lambda circuit: ", ".join(circuit.held_queues or ()),
)
_HASH = "0c1d2e3f405162738495a6b7c8d9eafb"


_ONE = argument("HASH", "hash of the circuit, from the list")
_ONE_OR_ALL = argument("HASH", "hash of the circuit, from the list", nargs="?")
_ROUTE = flag("--route", "the circuit of this route, even if it was never used", value="ROUTE")


def _close(server: Remote, args: Namespace, out: Output) -> None:
    if _is_for_all(args):
        closed = server.circuits.close_all()
        out.result({"closed": closed}, f"{closed} closed")
    else:
        _show_circuit(server.circuits.close(args.hash), out)


def _unhold(server: Remote, args: Namespace, out: Output) -> None:
    circuits = server.circuits
    unheld = circuits.unhold_all() if _is_for_all(args) else circuits.unhold(args.hash)
    out.result({"unheld": unheld}, f"{unheld} unheld")


def _is_for_all(args: Namespace) -> bool:
    if (args.hash is None) != args.all:
        raise UsageError("give the hash of a circuit, or --all")
    return bool(args.all)


def _settings(server: Remote, args: Namespace, out: Output) -> None:
    circuits = server.circuits
    if _is_for_one(args.hash, args.route):
        return _show_own(circuits.own_settings(args.hash, route=args.route), out)
    settings = circuits.settings()
    own = _OWN.table(circuits.all_own_settings())
    return out.show(settings, _lines(settings), own)


def _set_settings(server: Remote, args: Namespace, out: Output) -> None:
    changes, circuits = _changes(args.setting), server.circuits
    if _is_for_one(args.circuit, args.route):
        return _show_own(_set_own(circuits, changes, args), out)
    if args.reset:
        circuits.reset_settings()
    settings = circuits.change_settings(changes) if changes else circuits.settings()
    return out.show(settings, _lines(settings))


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


def _show_circuit(circuit: Circuit, out: Output) -> None:
    out.show(circuit, (_CIRCUIT + _MORE).lines(circuit))


def _show_own(own: CircuitSettings, out: Output) -> None:
    overridden = own.overrides.values()
    settings = [
        (name, f"{display(value)}  (override)" if name in overridden else value)
        for name, value in _lines(own.settings)
    ]
    out.show(own, [("circuit", own.circuit), ("route", own.route)], settings)


def _overrides(own: CircuitSettings) -> str:
    texts = (f"{name}={display(value) or 'none'}" for name, value in own.overrides.values().items())
    return " ".join(texts)


_OWN = View("circuit overrides route", overrides=_overrides)


def _lines(settings: BreakerSettings) -> list[tuple[str, object]]:
    lines: list[tuple[str, object]] = []
    for name, value in msgspec.to_builtins(settings).items():
        if isinstance(value, dict):
            lines += [(f"{name}.{part}", of_part) for part, of_part in value.items()]
        else:
            lines.append((name, value))
    return lines


COMMANDS = {
    "routes": ServerCommand(
        listing(_ROUTE_VIEW, lambda server, args: server.routes.list()),
        more="A delivery takes the first route whose pattern matches its whole URI.",
        examples=("penstock routes", "penstock routes --json"),
    ),
    "routes set": ServerCommand(
        listing(_ROUTE_VIEW, lambda server, args: server.routes.put(_rules(args.file))),
        argument("FILE", "JSON file: an object of patterns and rules; - is standard input"),
        more="Replaces all routes, or none if one of them is invalid. Circuits of patterns that no "
        "longer exist are closed and removed.",
        examples=("penstock routes set rules.json", "penstock routes set - < rules.json"),
    ),
    "routes match": ServerCommand(
        _match,
        argument("URI", "path and query of a delivery"),
        examples=("penstock routes match /shop/orders/17",),
    ),
    "circuits": ServerCommand(
        listing(_CIRCUIT, lambda server, args: server.circuits.list()),
        examples=("penstock circuits", "penstock circuits --json"),
    ),
    "circuits show": ServerCommand(
        lambda server, args, out: _show_circuit(server.circuits.get(args.hash), out),
        _ONE,
        examples=(f"penstock circuits show {_HASH}",),
    ),
    "circuits close": ServerCommand(
        _close,
        _ONE_OR_ALL,
        flag("--all", "close all that are open or half-open"),
        more="Clears their outcome windows. Held queues are released one after the other, at the "
        "rate that the breaker's settings define.",
        examples=(f"penstock circuits close {_HASH}", "penstock circuits close --all"),
    ),
    "circuits unhold": ServerCommand(
        _unhold,
        _ONE_OR_ALL,
        flag("--all", "release the held queues of all circuits"),
        more="All at once, regardless of the breaker's settings; paused queues stay paused. "
        "Queues of an open circuit are held again with their next request: close it first.",
        examples=(f"penstock circuits unhold {_HASH}", "penstock circuits unhold --all"),
    ),
    "circuits open": ServerCommand(
        lambda server, args, out: _show_circuit(server.circuits.open(args.hash), out),
        _ONE,
        more="No delivery of its route is tried until it is closed.",
        examples=(f"penstock circuits open {_HASH}",),
    ),
    "circuits settings": ServerCommand(
        _settings,
        argument("HASH", "hash of a circuit; default: the settings that all share", nargs="?"),
        _ROUTE,
        more="Shows the shared settings and the overrides of circuits, or the settings of one "
        "circuit.",
        examples=(
            "penstock circuits settings",
            f"penstock circuits settings {_HASH}",
            "penstock circuits settings --route stripe",
        ),
    ),
    "circuits set": ServerCommand(
        _set_settings,
        argument(
            "SETTING",
            "NAME=VALUE, with a name from `penstock circuits settings`",
            nargs="*",
            type=pair,
        ),
        flag("--circuit", "only for this circuit; default: for all", value="HASH"),
        _ROUTE,
        flag("--reset", "reset all settings to their defaults first"),
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
