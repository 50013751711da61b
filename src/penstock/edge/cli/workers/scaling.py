"""`penstock scaling`: the fleets, what was decided last, and why."""

from __future__ import annotations

import argparse
from argparse import Namespace
from collections.abc import Sequence

from penstock.api.scaling import Decided, Fleet
from penstock.domain.scaling.recommendation import QueueLoad
from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.flags import remote, server_flags
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.parser import Parser
from penstock.edge.cli.registry import Command

COLUMNS = ("fleet", "queue", "ready", "workers", "wanted", "why", "last change", "trouble")
DECISIONS = ("at", "change", "wanted", "why", "analyser", "done")
_MOST = 1_000


def _configure(parser: Parser) -> None:
    parser.argument("FLEET", "one fleet, with its last decisions; default: all", nargs="?")
    parser.flag(
        "--limit",
        value="N",
        text="how many decisions to show of one fleet; default 10",
        type=_limit,
        default=10,
    )
    server_flags(parser)


def _run(args: Namespace, out: Output) -> int:
    with remote(args) as server:
        if args.fleet is None:
            return _listed(server.scaling.list(), out)
        fleet = server.scaling.get(args.fleet)
        decisions = server.scaling.decisions(args.fleet, limit=args.limit)
    if out.json:
        out.record(fleet)
        for decided in decisions:
            out.record(decided)
        return exits.OK
    out.fields([*zip(COLUMNS, row(fleet), strict=True), *_more(fleet)])
    if decisions:
        out.line()
        out.table(DECISIONS, map(_decision_row, decisions))
    return exits.OK


def _listed(fleets: Sequence[Fleet], out: Output) -> int:
    if out.json:
        for fleet in fleets:
            out.record(fleet)
        return exits.OK
    out.table(COLUMNS, map(row, fleets))
    if not fleets:
        exits.note("no autoscaler has looked after anything yet: penstock autoscale --help")
    return exits.OK


def row(fleet: Fleet) -> tuple[object, ...]:
    ready = None if fleet.sample is None else fleet.sample.ready
    why = fleet.decision.reason if fleet.decision else ""
    queues = ",".join(fleet.queues) or fleet.queue
    return fleet.name, queues, ready, _workers(fleet), fleet.wanted, why, *_ends(fleet)


def _workers(fleet: Fleet) -> str:
    if fleet.replicas is None:
        return "?"
    starting = f"+{fleet.replicas.starting}" if fleet.replicas.starting else ""
    return f"{fleet.replicas.running}{starting} of {fleet.min}–{fleet.max}"


def _ends(fleet: Fleet) -> tuple[str, str]:
    last = fleet.last_change
    told = "" if last is None else f"{last.change:+d} {last.reason}, {last.at:%H:%M:%S}Z"
    if last is not None and not last.is_done:
        told += " (dry run)" if fleet.is_dry else " (failed)"
    troubles = dict.fromkeys(trouble.code for trouble in fleet.troubles)
    return told, " ".join(troubles if fleet.is_watched else ["not watched", *troubles])


def _more(fleet: Fleet) -> list[tuple[str, object]]:
    sample, pressure, decision = fleet.sample, fleet.pressure, fleet.decision
    return [
        ("source", fleet.source),
        ("profile", fleet.profile),
        ("run by", fleet.replicas_by),
        ("group", fleet.group),
        ("seen", fleet.seen_at),
        ("seen by", fleet.seen_by),
        ("dry run", fleet.is_dry or None),
        ("leased", sample.leased if sample else None),
        ("oldest", None if sample is None else _age(sample.oldest_ms)),
        *((f"in {one.queue}", _load(one)) for one in (sample.queues if sample else ())),
        ("taken/s", f"{sample.consume_rate:.2f}" if sample else None),
        ("coming/s", f"{sample.publish_rate:.2f}" if sample else None),
        ("memory used", _percent(pressure.memory_percent) if pressure else None),
        ("disk free MB", pressure.disk_free_mb if pressure else None),
        ("pressure", fleet.pressure_level or None),
        ("inputs", _inputs(fleet) if decision else None),
        *(
            ("trouble", f"{one.part}: {one.text}, since {one.since_at:%H:%M:%S}Z")
            for one in fleet.troubles
        ),
    ]


def _inputs(fleet: Fleet) -> str | None:
    decision = fleet.decision
    if decision is None or decision.inputs is None:
        return None
    pairs = ((name, getattr(decision.inputs, name)) for name in decision.inputs.__struct_fields__)
    return " ".join(f"{name}={value:g}" for name, value in pairs if value is not None)


def _age(ms: int | None) -> str | None:
    return None if ms is None else f"{ms / 1000:.1f} s"


def _load(one: QueueLoad) -> str:
    age = _age(one.oldest_ms)
    return f"{one.ready} ready, {one.leased} leased" + (f", oldest {age}" if age else "")


def _percent(value: float | None) -> str | None:
    return None if value is None else f"{value:.2f} %"


def _decision_row(decided: Decided) -> tuple[object, ...]:
    told = decided.decision
    because, recommended = told.get("because"), told.get("recommended")
    analyser = f"{recommended:+d} {because}" if because and recommended is not None else ""
    how = "dry run" if told.get("dry_run") else told.get("error") or bool(told.get("acted"))
    return decided.at, f"{told['change']:+d}", told["wanted"], told["reason"], analyser, how


def _limit(text: str) -> int:
    number = int(text)
    if not 1 <= number <= _MOST:
        raise argparse.ArgumentTypeError(f"{number} is not from 1 to {_MOST}")
    return number


COMMANDS = {
    "scaling": Command(
        _run,
        _configure,
        more="Shows what the autoscaler has seen of each fleet, how many workers are wanted and "
        "why; of one fleet also all that its last recommendation was made of.",
        examples=(
            "penstock scaling",
            "penstock scaling mail --limit 50",
            "penstock scaling --json",
        ),
    ),
}
