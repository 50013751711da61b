"""`penstock export` and `penstock apply`: queues, topics, routes and so on as a file."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.edge.cli.kit.bodies import read_input
from penstock.edge.cli.kit.command import AppCommand, argument, flag
from penstock.edge.cli.kit.confirmation import is_confirmed
from penstock.edge.cli.kit.output import Output, display

if TYPE_CHECKING:
    from penstock.client.app import Penstock
    from penstock.client.definitions.plan import Plan, PlannedChange

_SIGNS = {"create": "+", "change": "~", "remove": "-"}
_DONE = {"create": "created", "change": "changed", "remove": "removed"}


def _export(app: Penstock, args: Namespace, out: Output) -> None:
    from penstock.client.definitions.broker import BrokerDefinitions
    from penstock.client.definitions.document import Format, render

    definitions = BrokerDefinitions(app.backend.channel).present()
    form = Format.JSON if out.json else Format(args.format)
    print(render(definitions, form), end="", flush=True)


def _apply(app: Penstock, args: Namespace, out: Output) -> int | None:
    from penstock.client.definitions.broker import BrokerDefinitions
    from penstock.client.definitions.document import parse_definitions, read_definitions

    if args.file == "-":
        wanted = parse_definitions(read_input(None), name="stdin.yaml")
    else:
        wanted = read_definitions(Path(args.file))
    broker = BrokerDefinitions(app.backend.channel)
    planned = broker.plan(wanted, prune=args.prune)
    if not out.json:
        _show(planned, out)
    if args.dry_run:
        if out.json:
            for change in planned.changes:
                out.record(_record(change, is_done=False))
        return None
    if planned.changes and not args.yes and not is_confirmed("Apply these changes?"):
        return None
    for change in broker.apply(planned, wanted):
        out.result(_record(change, is_done=True), f"{_DONE[change.action]} {_name(change)}")
    return None


def _show(planned: Plan, out: Output) -> None:
    for change in planned.changes:
        out.line(f"{_SIGNS[change.action]} {_name(change)}")
        for field, value in change.after.items():
            before = f"{_text(change.before[field])} → " if field in change.before else ""
            out.line(f"    {field}: {before}{_text(value)}")
    out.line(f"to do: {len(planned.changes)}, unchanged: {planned.unchanged}")
    if planned.extra:
        names = ", ".join(map(_name, planned.extra[:5]))
        more = f" and {len(planned.extra) - 5} more" if len(planned.extra) > 5 else ""
        out.line(f"not in the file, and kept (--prune removes them): {names}{more}")


def _name(change: PlannedChange) -> str:
    return f"{change.kind} {change.name}".rstrip()


def _text(value: Any) -> str:
    return "null" if value is None else display(value)


def _record(change: PlannedChange, *, is_done: bool) -> dict[str, Any]:
    return {**msgspec.to_builtins(change), "is_done": is_done}


COMMANDS = {
    "export": AppCommand(
        _export,
        flag("--format", "format of the file", choices=("yaml", "json"), default="yaml"),
        more="Prints queues, topics, breaker settings, fleets and recurring work, each with the "
        "values that differ from the defaults. Messages, keys, routes with their secrets and "
        "recurring work that an application declares are left out.",
        examples=("penstock export > definitions.yaml",),
    ),
    "apply": AppCommand(
        _apply,
        argument("FILE", "definitions in YAML, TOML or JSON; - reads YAML from standard input"),
        flag("--dry-run", "only print the plan", action="store_true"),
        flag(
            "--prune",
            "also remove what the sections of the file do not have; queues only if they are empty",
            action="store_true",
        ),
        flag("--yes", "do not ask for confirmation", action="store_true"),
        more="Prints a plan first: what it creates (+), changes (~) and removes (-). On a terminal "
        "it asks for confirmation. A section that the file does not have is not touched, and a "
        "field that is left out gets its default. Applying a file again changes nothing.",
        examples=(
            "penstock apply definitions.yaml --dry-run",
            "penstock apply definitions.yaml --prune --yes",
        ),
    ),
}
