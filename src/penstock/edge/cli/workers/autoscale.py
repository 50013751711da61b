"""`penstock autoscale`"""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.command import Command, flag
from penstock.edge.cli.kit.flags import duration, load_settings, setting_flag, store_flags
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.stop_signal import StopSignal

if TYPE_CHECKING:
    from penstock.domain.scaling.fleet_status import FleetStatus
    from penstock.wiring.autoscaling import Autoscaling

COLUMNS = ("fleet", "ready", "workers", "change", "wanted", "why", "analyser", "trouble")


def _run(args: Namespace, out: Output) -> int | None:
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
    out.records(found, COLUMNS, _row)
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


def _row(status: FleetStatus) -> tuple[object, ...]:
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
    "autoscale": Command(
        _run,
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
    )
}
