"""`penstock autoscale`"""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.flags import duration, loaded, store_flags
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.parser import Parser
from penstock.edge.cli.kit.stop_signal import StopSignal
from penstock.edge.cli.registry import Command
from penstock.settings.catalogue import catalogue

if TYPE_CHECKING:
    from penstock.domain.scaling.fleet_status import FleetStatus
    from penstock.wiring.autoscaling import Autoscaling

COLUMNS = ("fleet", "ready", "workers", "change", "wanted", "why", "analyser", "trouble")


def configure(parser: Parser) -> None:
    parser.flag(
        "--fleets",
        value="FILE",
        text="file of fleets (TOML)",
        env=catalogue()["scaling.fleets_file"].env,
        reads_env=False,
    )
    parser.flag("--dry-run", text="tell what would be done, and do nothing", action="store_true")
    parser.flag(
        "--once", text="look at every fleet once, act, show it, and end", action="store_true"
    )
    parser.flag(
        "--once-for",
        value="DURATION",
        text="how long --once waits for answers at most; default 1m",
        type=duration,
        default=60_000,
    )
    store_flags(parser)


def run(args: Namespace, out: Output) -> int:
    from penstock.supervision.logs import set_up_logs
    from penstock.wiring.autoscaling import Autoscaling
    from penstock.wiring.broker import open_broker

    settings = loaded(args, fleets="scaling.fleets_file").settings
    set_up_logs(settings.log.level, settings.log.format)
    broker = open_broker(settings)
    try:
        scaling = Autoscaling(broker, is_dry=args.dry_run, is_once=args.once)
        if args.once:
            return _once(scaling, args, out)
        broker.start_duties()
        return _until_told(scaling, args, out)
    finally:
        broker.close()


def _once(scaling: Autoscaling, args: Namespace, out: Output) -> int:
    found = scaling.once(timeout_ms=args.once_for)
    if found is None:
        exits.note("another autoscaler looks after these fleets: see penstock scaling")
        return exits.REFUSED
    if out.json:
        for status in found:
            out.record(status)
    else:
        out.table(COLUMNS, map(_row, found))
    return exits.OK


def _until_told(scaling: Autoscaling, args: Namespace, out: Output) -> int:
    ending = StopSignal()
    scaling.start()
    if out.json:
        out.record({"ready": scaling.names, "dry_run": args.dry_run})
    else:
        how = " (dry run)" if args.dry_run else ""
        out.line(f"penstock autoscale is ready{how}: {', '.join(scaling.names)}")
    try:
        ending.wait()
    finally:
        scaling.stop()
    return exits.OK


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
        run,
        configure,
        more="Looks after the fleets of a file: reads how much work waits for them, and has "
        "workers started and drained. It may run on several nodes: one acts at a time. SIGTERM or "
        "Ctrl-C ends it; workers that it runs as processes are drained then, unless the file says "
        "to keep them.",
        examples=(
            "penstock autoscale --fleets fleets.toml",
            "penstock autoscale --fleets fleets.toml --dry-run --once",
            "penstock autoscale --fleets fleets.toml --store postgresql://penstock@db/penstock",
        ),
    )
}
