"""`penstock pipeline simulate`: what other workers, limits or retries would have done."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError, Namespace
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.domain.datetimes import moment_of
from penstock.domain.duration import duration_text
from penstock.domain.errors import InvalidRequest
from penstock.domain.limits import SECOND
from penstock.domain.message import retry
from penstock.domain.queue.rate import MAX_LIMIT, Rate, check_rate
from penstock.edge.cli.broker.queues import BACKOFF_FORM, RATE_FORM, parse_backoff, parse_rate
from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.command import flag
from penstock.edge.cli.kit.flags import number
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.progress import progress
from penstock.edge.cli.kit.sparkline import sparkline
from penstock.edge.cli.kit.view import View
from penstock.edge.cli.operate.archive import lake_flag
from penstock.edge.cli.pipeline.engines import open_local_lake
from penstock.edge.cli.pipeline.failures import LocalCommand
from penstock.edge.cli.pipeline.spark_command import day
from penstock.settings import Settings

if TYPE_CHECKING:
    from penstock.pipeline.files.local_lake import LocalLake
    from penstock.pipeline.replays.recorded import RecordedQueue
    from penstock.pipeline.replays.what_if import Simulation, Waits

MAX_WORKERS = 100_000
_FACTOR = re.compile(r"(\d+(?:\.\d+)?)x?")
_MAX_FACTOR = 100
_TABLE = View("scenario messages p50 p95 p99 max backlog dead utilisation worker_hours cost")


def _simulate(settings: Settings, args: Namespace, out: Output) -> int:
    with progress("Simulating"):
        recorded, simulations = _run(open_local_lake(settings), args)
    _show(recorded, simulations, args, out)
    if recorded.not_simulated:
        exits.note(
            f"queue {args.queue!r} uses {' and '.join(recorded.not_simulated)}, which are not "
            "simulated: its real waits may be longer"
        )
    return exits.OK


def _run(lake: LocalLake, args: Namespace) -> tuple[RecordedQueue, list[tuple[int, Simulation]]]:
    from penstock.pipeline.replays.recorded import read_queue
    from penstock.pipeline.replays.what_if import Scenario, chances, scale, simulate

    from_dt, to_dt = _days(lake, args)
    recorded = read_queue(lake, args.queue, from_dt=from_dt, to_dt=to_dt)
    if not recorded.messages:
        raise InvalidRequest(
            f"the lake has no finished messages of queue {args.queue!r} that arrived from "
            f"{from_dt} to {to_dt}"
        )
    messages = scale(recorded.messages, args.rate, chances(args.seed))
    found = []
    for workers in args.workers or [max(1, -(-recorded.slots // args.slots))]:
        scenario = Scenario(
            workers=workers,
            slots=args.slots,
            max_leased=args.max_leased,
            rate=_parse_rate(args.rate_limit),
            backoff=_parse_backoff(args.backoff),
            max_attempts=args.max_attempts,
        )
        found.append(
            (
                workers,
                simulate(
                    messages,
                    scenario,
                    from_at=recorded.from_at,
                    to_at=recorded.to_at,
                    chances=chances(args.seed),
                ),
            )
        )
    return recorded, found


def _days(lake: LocalLake, args: Namespace) -> tuple[str, str]:
    """By default the latest day with finished messages of the queue."""
    from penstock.pipeline.replays.recorded import last_day

    from_dt, to_dt = getattr(args, "from"), args.to
    if from_dt is None or to_dt is None:
        last = last_day(lake, args.queue)
        if last is None:
            raise InvalidRequest(f"the lake has no finished messages of queue {args.queue!r}")
        to_dt = to_dt or max(last, from_dt or "")
        from_dt = from_dt or to_dt
    if from_dt > to_dt:
        raise InvalidRequest(f"--from {from_dt} is after --to {to_dt}")
    return from_dt, to_dt


def _show(
    recorded: RecordedQueue,
    simulations: list[tuple[int, Simulation]],
    args: Namespace,
    out: Output,
) -> None:
    if out.json:
        out.record(_document(recorded, simulations, args))
        return
    from_at, to_at = moment_of(recorded.from_at), moment_of(recorded.to_at)
    out.line(f"{args.queue}, {from_at:%F %R} to {to_at:%F %R}: peak concurrency {recorded.slots}")
    out.line()
    rows: list[dict[str, object]] = [
        {"scenario": "recorded", "messages": len(recorded.messages), **_wait_columns(recorded.wait)}
    ]
    for workers, found in simulations:
        rows.append(
            {
                "scenario": f"{workers} {'worker' if workers == 1 else 'workers'}",
                "messages": found.messages,
                **_wait_columns(found.wait),
                "backlog": found.backlog_max,
                "dead": found.dead,
                "utilisation": f"{found.utilisation:.0%}",
                "worker_hours": round(found.worker_hours, 2),
                "cost": _cost(found, args.price),
            }
        )
    blank = dict.fromkeys(("backlog", "dead", "utilisation", "worker_hours", "cost"))
    out.table(*_TABLE.table(blank | row for row in rows))
    for workers, found in simulations:
        out.line()
        until = moment_of(found.ended_at)
        out.line(f"backlog with {workers}, from {from_at:%F %R} to {until:%F %R}")
        out.line(f"{sparkline([point.ready for point in found.backlog])} {found.backlog_max}")


def _document(
    recorded: RecordedQueue, simulations: list[tuple[int, Simulation]], args: Namespace
) -> dict[str, Any]:
    return {
        "queue": args.queue,
        "from": moment_of(recorded.from_at),
        "to": moment_of(recorded.to_at),
        "rate": args.rate,
        "recorded": {
            "messages": len(recorded.messages),
            "slots": recorded.slots,
            "wait": recorded.wait,
        },
        "not_simulated": recorded.not_simulated,
        "simulated": [
            {"workers": workers, "slots": args.slots}
            | msgspec.to_builtins(found)
            | {"ended_at": moment_of(found.ended_at)}
            | {"backlog": [{"at": moment_of(p.at), "ready": p.ready} for p in found.backlog]}
            | {"cost": _cost(found, args.price)}
            for workers, found in simulations
        ],
    }


def _wait_columns(wait: Waits) -> dict[str, str]:
    values = {"p50": wait.p50_ms, "p95": wait.p95_ms, "p99": wait.p99_ms, "max": wait.max_ms}
    return {name: "" if ms is None else _readable(ms) for name, ms in values.items()}


def _readable(ms: int) -> str:
    """Three digits of a short time, whole seconds of a long one."""
    return duration_text(ms if ms < 10 * SECOND else ms // SECOND * SECOND)


def _cost(found: Simulation, price: float | None) -> float | None:
    return None if price is None else round(found.worker_hours * price, 2)


def _factor(text: str) -> float:
    match = _FACTOR.fullmatch(text)
    if match is None or not 0 < float(match[1]) <= _MAX_FACTOR:
        raise ArgumentTypeError(f"{text!r} is not a factor such as 2x or 0.5x, up to {_MAX_FACTOR}")
    return float(match[1])


def _price(text: str) -> float:
    try:
        price = float(text)
    except ValueError:
        price = -1
    if not 0 <= price < float("inf"):
        raise ArgumentTypeError(f"{text!r} is not a price such as 0.25")
    return price


def _parse_rate(given: dict[str, Any] | None) -> Rate | None:
    rate = None if given is None else _convert(given, Rate)
    check_rate("rate-limit", rate, most_burst=MAX_LIMIT)
    return rate


def _parse_backoff(given: dict[str, Any] | None) -> retry.Backoff | None:
    if given is None:
        return None
    backoff: retry.Backoff = _convert(given, retry.Backoff)
    return retry.check(backoff)


def _convert(given: dict[str, Any], kind: Any) -> Any:
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        raise InvalidRequest(str(error)) from None


COMMANDS = {
    "pipeline simulate": LocalCommand(
        _simulate,
        flag("--queue", "the queue whose messages are replayed", value="QUEUE", required=True),
        flag(
            "--workers",
            "number of workers; may be repeated, to compare; default: the recorded peak",
            value="N",
            action="append",
            type=number(1, MAX_WORKERS),
            default=[],
        ),
        flag("--slots", "slots of each worker", value="N", type=number(1, 10_000), default=1),
        flag(
            "--rate",
            "how many times as many messages arrive, such as 2x or 0.5x",
            value="FACTOR",
            type=_factor,
            default=1.0,
        ),
        flag(
            "--max-leased",
            "limit of messages that are leased at once",
            value="N",
            type=number(1, MAX_LIMIT),
        ),
        flag("--rate-limit", f"limit of claims: {RATE_FORM}", value="RATE", type=parse_rate),
        flag(
            "--backoff",
            f"pauses after failures: {BACKOFF_FORM}; default: as recorded",
            value="BACKOFF",
            type=parse_backoff,
        ),
        flag(
            "--max-attempts",
            "maximum number of failed attempts; default: as recorded",
            value="N",
            type=number(1, 1_000_000),
        ),
        flag(
            "--price", "price of a worker for an hour, in any currency", value="PRICE", type=_price
        ),
        flag(
            "--from",
            "first day, such as 2030-01-31; default: the latest day with finished messages",
            type=day,
        ),
        flag("--to", "last day, inclusive; default: the latest with finished messages", type=day),
        flag("--seed", "random seed", type=int, default=1),
        lake_flag,
        more="Replays the recorded arrivals and service times of a queue against other numbers of "
        "workers, limits or retries, and shows waits, backlog, utilisation and cost. It reads the "
        "lake, changes nothing, and needs neither a server nor Spark.",
        examples=(
            "penstock pipeline simulate --queue mail --workers 8 --rate 2x",
            "penstock pipeline simulate --queue mail --workers 4 --workers 8 --from 2030-01-01",
            "penstock pipeline simulate --queue hooks --rate-limit 50/1s --max-attempts 3 --json",
        ),
    ),
}
