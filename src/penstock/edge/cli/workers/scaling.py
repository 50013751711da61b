"""`penstock scaling`: the fleets and their latest scaling decisions."""

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
_MAX = 1_000


def _configure(parser: Parser) -> None:
    parser.argument(
        "FLEET", "show this fleet with its latest decisions; default: all fleets", nargs="?"
    )
    parser.flag(
        "--limit",
        value="N",
        text="number of decisions of one fleet; default 10",
        type=_limit,
        default=10,
    )
    server_flags(parser)


def _run(args: Namespace, out: Output) -> int:
    with remote(args) as server:
        if args.fleet is None:
            return _list(server.scaling.list(), out)
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


def _list(fleets: Sequence[Fleet], out: Output) -> int:
    out.records(fleets, COLUMNS, row)
    if not fleets and not out.json:
        exits.note("no autoscaler has run yet; see penstock autoscale --help")
    return exits.OK


def row(fleet: Fleet) -> tuple[object, ...]:
    ready = None if fleet.sample is None else fleet.sample.ready
    why = fleet.decision.reason if fleet.decision else ""
    queues = ",".join(fleet.queues) or fleet.queue
    return fleet.name, queues, ready, _workers(fleet), fleet.wanted, why, *_last_columns(fleet)


def _workers(fleet: Fleet) -> str:
    if fleet.replicas is None:
        return "?"
    starting = f"+{fleet.replicas.starting}" if fleet.replicas.starting else ""
    return f"{fleet.replicas.running}{starting} of {fleet.min}–{fleet.max}"


def _last_columns(fleet: Fleet) -> tuple[str, str]:
    last = fleet.last_change
    change = "" if last is None else f"{last.change:+d} {last.reason}, {last.at:%H:%M:%S}Z"
    if last is not None and not last.is_done:
        change += " (dry run)" if fleet.is_dry else " (failed)"
    troubles = dict.fromkeys(trouble.code for trouble in fleet.troubles)
    return change, " ".join(troubles if fleet.is_watched else ["not watched", *troubles])


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
    decision = decided.decision
    because, recommended = decision.get("because"), decision.get("recommended")
    analyser = f"{recommended:+d} {because}" if because and recommended is not None else ""
    how = (
        "dry run"
        if decision.get("dry_run")
        else decision.get("error") or bool(decision.get("acted"))
    )
    return (
        decided.at,
        f"{decision['change']:+d}",
        decision["wanted"],
        decision["reason"],
        analyser,
        how,
    )


def _limit(text: str) -> int:
    number = int(text)
    if not 1 <= number <= _MAX:
        raise argparse.ArgumentTypeError(f"{number} is not between 1 and {_MAX}")
    return number


COMMANDS = {
    "scaling": Command(
        _run,
        _configure,
        more="Shows the autoscaler's latest readings of each fleet, the wanted number of workers "
        "and the reason; for one fleet also the inputs of its last recommendation.",
        examples=(
            "penstock scaling",
            "penstock scaling mail --limit 50",
            "penstock scaling --json",
        ),
    ),
}
