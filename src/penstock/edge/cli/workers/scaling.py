"""`penstock scaling` and `autoscale`: the fleets, and the autoscaler that starts their workers."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.api.scaling import Decided, Fleet
from penstock.domain.scaling.recommendation import QueueLoad
from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.command import Command, ServerCommand, argument, flag
from penstock.edge.cli.kit.flags import duration, load_settings, number, setting_flag, store_flags
from penstock.edge.cli.kit.output import Output, Table
from penstock.edge.cli.kit.stop_signal import StopSignal

if TYPE_CHECKING:
    from penstock.client.remote.server import Remote
    from penstock.domain.scaling.fleet_status import FleetStatus
    from penstock.wiring.autoscaling import Autoscaling

COLUMNS = ("fleet", "queue", "ready", "workers", "wanted", "why", "last change", "trouble")
DECISIONS = ("at", "change", "wanted", "why", "analyser", "done")


def _scaling(server: Remote, args: Namespace, out: Output) -> None:
    if args.fleet is None:
        return _list(server.scaling.list(), out)
    fleet = server.scaling.get(args.fleet)
    decisions = server.scaling.decisions(args.fleet, limit=args.limit)
    out.show(
        fleet,
        [*zip(COLUMNS, _row(fleet), strict=True), *_more(fleet)],
        Table(DECISIONS, [*map(_decision_row, decisions)]),
    )
    if out.json:
        for decided in decisions:
            out.record(decided)
    return None


def _list(fleets: Sequence[Fleet], out: Output) -> None:
    out.records(fleets, COLUMNS, _row)
    if not fleets and not out.json:
        exits.note("no autoscaler has run yet; see penstock autoscale --help")


def _row(fleet: Fleet) -> tuple[object, ...]:
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


STATUS_COLUMNS = ("fleet", "ready", "workers", "change", "wanted", "why", "analyser", "trouble")


def _autoscale(args: Namespace, out: Output) -> int | None:
    from penstock.supervision.logs import set_up_logs
    from penstock.wiring.autoscaling import Autoscaling
    from penstock.wiring.broker import open_broker

    settings = load_settings(args, fleets="scaling.fleets_file").settings
    set_up_logs(settings.log.level, settings.log.format)
    broker = open_broker(settings)
    try:
        scaling = Autoscaling(broker, is_dry=args.dry_run, is_once=args.once)
        if args.once:
            return _once(scaling, args, out)
        broker.start_duties()
        _run_until_stopped(scaling, args, out)
        return None
    finally:
        broker.close()


def _once(scaling: Autoscaling, args: Namespace, out: Output) -> int | None:
    found = scaling.once(timeout_ms=args.once_for)
    if found is None:
        exits.note("another autoscaler is in charge of these fleets; see penstock scaling")
        return exits.REFUSED
    out.records(found, STATUS_COLUMNS, _status_row)
    return None


def _run_until_stopped(scaling: Autoscaling, args: Namespace, out: Output) -> None:
    stop_signal = StopSignal()
    scaling.start()
    dry_run = " (dry run)" if args.dry_run else ""
    out.result(
        {"ready": scaling.names, "dry_run": args.dry_run},
        f"penstock autoscale is ready{dry_run}: {', '.join(scaling.names)}",
    )
    try:
        stop_signal.wait()
    finally:
        scaling.stop()


def _status_row(status: FleetStatus) -> tuple[object, ...]:
    replicas, decision = status.replicas, status.decision
    because = "" if decision is None else decision.because
    return (
        status.name,
        None if status.sample is None else status.sample.ready,
        "?" if replicas is None else replicas.total,
        "" if decision is None else f"{decision.change:+d}",
        status.wanted,
        "" if decision is None else decision.reason,
        f"{decision.recommended:+d} {because}" if decision and decision.recommended else because,
        " ".join(dict.fromkeys(trouble.code for trouble in status.troubles)),
    )


COMMANDS = {
    "scaling": ServerCommand(
        _scaling,
        argument(
            "FLEET", "show this fleet with its latest decisions; default: all fleets", nargs="?"
        ),
        flag("--limit", "number of decisions of one fleet", type=number(1, 1_000), default=10),
        more="Shows the autoscaler's latest readings of each fleet, the wanted number of workers "
        "and the reason; for one fleet also the inputs of its last recommendation.",
        examples=(
            "penstock scaling",
            "penstock scaling mail --limit 50",
            "penstock scaling --json",
        ),
    ),
    "autoscale": Command(
        _autoscale,
        setting_flag(
            "--fleets",
            "scaling.fleets_file",
            value="FILE",
            text="TOML file that declares the fleets",
        ),
        flag("--dry-run", "report decisions without acting on them"),
        flag("--once", "decide and act once for every fleet, show the result, and exit"),
        flag("--once-for", "how long --once waits for replies", type=duration, default=60_000),
        store_flags,
        more="Reads the backlog of each fleet in the file, and starts and drains its workers. It "
        "can run on several nodes; one of them acts at a time. SIGTERM or Ctrl-C stops it; "
        "workers that it runs as processes are then drained, unless the file says to keep them.",
        examples=(
            "penstock autoscale --fleets fleets.toml",
            "penstock autoscale --fleets fleets.toml --dry-run --once",
            "penstock autoscale --fleets fleets.toml --store postgresql://penstock@db/penstock",
        ),
    ),
}
