"""`penstock scaling` and `autoscale`: the fleets, and the autoscaler that starts their workers."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from penstock.api.scaling import Decided, Fleet
from penstock.domain.scaling.recommendation import QueueLoad
from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.command import ServerCommand, StoreCommand, argument, flag
from penstock.edge.cli.kit.exits import UsageError
from penstock.edge.cli.kit.flags import duration, number, pair, setting_flag
from penstock.edge.cli.kit.output import Output, display, fields_of
from penstock.edge.cli.kit.stop_signal import StopSignal
from penstock.edge.cli.kit.view import View
from penstock.settings import Settings

if TYPE_CHECKING:
    from penstock.client.remote.server import Remote
    from penstock.domain.scaling.fleet_status import FleetStatus
    from penstock.wiring.autoscaling import Autoscaling


def _scaling(server: Remote, args: Namespace, out: Output) -> None:
    if args.fleet is None:
        return _list(server.scaling.list(), out)
    fleet = server.scaling.get(args.fleet)
    decisions = server.scaling.decisions(args.fleet, limit=args.limit)
    out.show(
        fleet,
        [*(_FLEET + _ORIGIN).lines(fleet), *_detail_fields(fleet)],
        _DECISION.table(decisions),
    )
    if out.json:
        for decided in decisions:
            out.record(decided)
    return None


def _list(fleets: Sequence[Fleet], out: Output) -> None:
    out.records(fleets, _FLEET)
    if not fleets and not out.json:
        exits.note("no autoscaler has run yet; see penstock autoscale --help")


def _set_profile(server: Remote, args: Namespace, out: Output) -> None:
    if args.reset:
        server.scaling.reset_profile(args.fleet)
    if args.setting:
        changes = {name: _whole_number(name, text) for name, text in args.setting}
        server.scaling.change_profile(args.fleet, changes)
    found = server.scaling.profile(args.fleet)
    overridden = found.overrides.values()
    settings = [] if found.settings is None else fields_of(found.settings)
    out.show(
        found,
        [("fleet", found.fleet), ("profile", found.profile)],
        [
            (name, f"{display(value)}  (override)" if name in overridden else value)
            for name, value in settings
        ],
    )


def _whole_number(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise UsageError(f"{name}={text} is not a whole number") from None


def _why(fleet: Fleet | FleetStatus) -> str:
    return fleet.decision.reason if fleet.decision else ""


def _ready(fleet: Fleet | FleetStatus) -> int | None:
    return None if fleet.sample is None else fleet.sample.ready


def _troubles(fleet: Fleet | FleetStatus) -> list[str]:
    return list(dict.fromkeys(trouble.code for trouble in fleet.troubles))


def _workers(fleet: Fleet) -> str:
    if fleet.replicas is None:
        return "?"
    starting = f"+{fleet.replicas.starting}" if fleet.replicas.starting else ""
    return f"{fleet.replicas.running}{starting} of {fleet.min}–{fleet.max}"


def _last_change(fleet: Fleet) -> str:
    last = fleet.last_change
    if last is None:
        return ""
    change = f"{last.change:+d} {last.reason}, {last.at:%H:%M:%S}Z"
    if last.is_done:
        return change
    return change + (" (dry run)" if fleet.is_dry else " (failed)")


_FLEET = View(
    "name:fleet queue ready workers wanted why last_change trouble",
    queue=lambda fleet: ",".join(fleet.queues) or fleet.queue,
    ready=_ready,
    workers=_workers,
    why=_why,
    last_change=_last_change,
    trouble=lambda fleet: [*([] if fleet.is_watched else ["not watched"]), *_troubles(fleet)],
)
_ORIGIN = View(
    "source profile replicas_by:run_by group seen_at seen_by is_dry:dry_run",
    is_dry=lambda fleet: fleet.is_dry or None,
)


def _detail_fields(fleet: Fleet) -> list[tuple[str, object]]:
    sample, pressure, decision = fleet.sample, fleet.pressure, fleet.decision
    return [
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


def _analyser(decided: Decided) -> str:
    because, recommended = decided.decision.get("because"), decided.decision.get("recommended")
    return f"{recommended:+d} {because}" if because and recommended is not None else ""


def _how(decided: Decided) -> object:
    decision = decided.decision
    if decision.get("dry_run"):
        return "dry run"
    return decision.get("error") or bool(decision.get("acted"))


_DECISION = View(
    "at change wanted why analyser done",
    change=lambda decided: f"{decided.decision['change']:+d}",
    wanted=lambda decided: decided.decision["wanted"],
    why=lambda decided: decided.decision["reason"],
    analyser=_analyser,
    done=_how,
)


def _autoscale(settings: Settings, args: Namespace, out: Output) -> int | None:
    from penstock.supervision.logs import set_up_logs
    from penstock.wiring.autoscaling import Autoscaling
    from penstock.wiring.broker import open_broker

    set_up_logs(settings.log.level, settings.log.format)
    with closing(open_broker(settings)) as broker:
        scaling = Autoscaling(broker, is_dry=args.dry_run, is_once=args.once)
        if args.once:
            return _once(scaling, args, out)
        broker.start_duties()
        _run_until_stopped(scaling, args, out)
        return None


def _once(scaling: Autoscaling, args: Namespace, out: Output) -> int | None:
    found = scaling.once(timeout_ms=args.once_for)
    if found is None:
        exits.note("another autoscaler is in charge of these fleets; see penstock scaling")
        return exits.REFUSED
    out.records(found, _STATUS)
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


def _recommend(status: FleetStatus) -> object:
    decision = status.decision
    if decision is None or not decision.recommended:
        return "" if decision is None else decision.because
    return f"{decision.recommended:+d} {decision.because}"


_STATUS = View(
    "name:fleet ready workers change wanted why analyser trouble",
    ready=_ready,
    workers=lambda status: "?" if status.replicas is None else status.replicas.total,
    change=lambda status: "" if status.decision is None else f"{status.decision.change:+d}",
    why=_why,
    analyser=_recommend,
    trouble=_troubles,
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
    "scaling set": ServerCommand(
        _set_profile,
        argument("FLEET", "name of the fleet"),
        argument(
            "SETTING",
            "NAME=VALUE: samples_needed, backlog_goal_s or most_up",
            nargs="*",
            type=pair,
        ),
        flag("--reset", "remove all overrides first: the fleets file applies again"),
        more="Overrides the profile of one fleet in the store; its autoscaler picks up the "
        "change within seconds. Without settings, shows the profile in force.",
        examples=(
            "penstock scaling set mail",
            "penstock scaling set mail backlog_goal_s=60 samples_needed=3",
            "penstock scaling set mail --reset",
        ),
    ),
    "autoscale": StoreCommand(
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
