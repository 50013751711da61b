"""`penstock pipeline restore` and `resend`: put messages from the lake back into a store."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from penstock.domain.datetimes import instant_of
from penstock.domain.errors import PenstockError
from penstock.domain.limits import DAY
from penstock.domain.message.draft import Draft
from penstock.domain.queue.rate import MAX_LIMIT
from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.command import Part, argument, flag
from penstock.edge.cli.kit.flags import DEFAULT_SERVER, instant, number
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.progress import progress
from penstock.edge.cli.kit.throttle import Throttle
from penstock.edge.cli.kit.view import View
from penstock.edge.cli.pipeline.shared import SparkCommand, open_lake
from penstock.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.pipeline.restore import RestoreFilter
    from penstock.services.lake import Restored

T = TypeVar("T")
_COUNTS = View("queue state messages without_body")
WINDOW_MS = 30 * DAY  # time in which a resend of the same name sends nothing twice
_MAX_REFUSALS = 5  # how many are shown with their reasons


def _flags(what: str) -> list[Part]:
    only = [
        flag(
            f"--{name}",
            f"only messages with this {name}; may be repeated",
            value=name.upper(),
            action="append",
            default=[],
        )
        for name in ("queue", "kind", "tag")
    ]
    return [
        *only,
        flag("--dry-run", f"only count the messages that would be {what}"),
        flag(
            "--rate",
            "messages per second at most; default: no limit",
            value="N",
            type=number(1, MAX_LIMIT),
        ),
    ]


def _restore(settings: Settings, args: Namespace, out: Output) -> int:
    from penstock.pipeline import restore
    from penstock.services.lake import RestoreService
    from penstock.wiring.broker import open_broker

    at = instant_of(args.at)
    with open_lake(args, settings) as lake:
        tables = restore.tables_of(lake)
        bounds = restore.bounds_of(tables["snapshots"], at=at)
        if bounds.next_no is None:
            exits.note(
                "the lake has no snapshot at or after that instant: unfinished messages that were "
                "sent after the last snapshot are missing"
            )
        rows = restore.pick(restore.state_at(tables, at=at, bounds=bounds), _wanted(args))
        rows = rows.cache()
        total = _show_counts(rows, out)
        if args.dry_run or not total:
            return exits.OK
        queues = restore.queue_settings(lake, bounds)
        with closing(open_broker(settings)) as broker:
            restoring = RestoreService(broker.store, broker.clock)
            named = {row.queue for row in rows.select("queue").distinct().collect()}
            restoring.make_queues({n: text for n, text in queues.items() if n in named})
            done = _put(restoring, rows, total, Throttle(args.rate, _steady()))
    return _report(done, out)


def _put(restoring: Any, rows: DataFrame, total: int, throttle: Throttle) -> Restored:
    from penstock.services.lake import Restored

    done = Restored()
    ordered = rows.orderBy("order_no", "message_no").toLocalIterator(prefetchPartitions=True)
    with progress("Restoring", total) as advance:
        for chunk in _chunks(ordered, throttle.most):
            throttle.wait_for(len(chunk))
            done += restoring.put([row.asDict() for row in chunk]).result()
            advance(done.restored + done.known, total)
    return done


def _resend(settings: Settings, args: Namespace, out: Output) -> int:
    from penstock.client.app import Penstock
    from penstock.pipeline import restore

    with open_lake(args, settings) as lake:
        tables = restore.tables_of(lake)
        rows = restore.ended_messages(
            tables,
            from_at=instant_of(getattr(args, "from")),
            to_at=instant_of(args.to),
            outcomes=args.outcome or ["dead"],
            wanted=_wanted(args),
        ).cache()
        total = _show_counts(rows.withColumnRenamed("outcome", "state"), out)
        if args.dry_run or not total:
            return exits.OK
        throttle = Throttle(args.rate, _steady())
        with Penstock(args.target, key=args.key) as app:
            done = _send(app, rows, args, throttle, total)
    return _report(done, out)


def _send(app: Any, rows: DataFrame, args: Namespace, throttle: Throttle, total: int) -> Restored:
    from penstock.services.lake import Restored

    done = Restored()
    ordered = rows.orderBy("queue", "message_no", "finished_at")
    with progress("Sending", total) as advance:
        for chunk in _chunks(ordered.toLocalIterator(prefetchPartitions=True), throttle.most):
            by_queue: dict[str, list[Any]] = {}
            for row in chunk:
                if row.body is None:
                    done += Restored(without_body=1)
                else:
                    by_queue.setdefault(args.to_queue or row.queue, []).append(row)
            for queue, some in by_queue.items():
                throttle.wait_for(len(some))
                drafts = [_draft(row, args.name) for row in some]
                for row, result in zip(some, app.backend.send(queue, drafts), strict=True):
                    done += _result_of(row.id, result)
            advance(done.restored + done.known, total)
    return done


def _result_of(message_id: str, result: Any) -> Restored:
    from penstock.services.lake import Restored

    if isinstance(result, PenstockError):
        return Restored(refused=((message_id, f"{result} ({result.code})"),))
    return Restored(known=1) if result.is_duplicate else Restored(restored=1)


def _draft(row: Any, name: str) -> Draft:
    """A new message with the same content, without the old one's attempts and instants."""
    attributes = None if row.attributes is None else msgspec.json.decode(row.attributes)
    return Draft(
        body=row.body,
        attributes=attributes,
        kind=row.kind,
        entity_id=row.entity_id,
        tags=tuple(tag for tag in (row.tag1, row.tag2) if tag is not None),
        group=row.group_key,
        priority=row.priority,
        route=row.route,
        trace=row.trace,
        dedup_key=f"resend:{name}:{row.dt}:{row.history_no}",
        dedup_window_ms=WINDOW_MS,
    )


def _show_counts(rows: DataFrame, out: Output) -> int:
    from penstock.pipeline import restore

    counts = [row.asDict() for row in restore.counts(rows).collect()]
    out.records(counts, _COUNTS)
    return sum(row["messages"] for row in counts)


def _report(done: Restored, out: Output) -> int:
    out.result(
        done,
        f"{done.restored} sent, {done.known} existed already, {done.without_body} without a body, "
        f"{len(done.refused)} refused",
    )
    for message_id, why in done.refused[:_MAX_REFUSALS]:
        exits.note(f"{message_id}: {why}")
    return exits.REFUSED if done.refused or done.without_body else exits.OK


def _wanted(args: Namespace) -> RestoreFilter:
    from penstock.pipeline.restore import RestoreFilter

    return RestoreFilter(
        queues=tuple(args.queue),
        kinds=tuple(args.kind),
        tags=tuple(args.tag),
        states=tuple(getattr(args, "state", ())),
    )


def _chunks(rows: Iterable[T], most: int) -> Iterator[list[T]]:
    iterator = iter(rows)
    while chunk := list(islice(iterator, most)):
        yield chunk


def _steady() -> Any:
    from penstock.wiring.broker import steady_clock

    return steady_clock()


COMMANDS = {
    "pipeline restore": SparkCommand(
        _restore,
        flag("--at", "the instant to restore, in ISO 8601", type=instant, required=True),
        flag(
            "--state",
            "only waiting, ready (including leased) or dead messages; may be repeated",
            action="append",
            choices=["waiting", "ready", "dead"],
            default=[],
        ),
        *_flags("restored"),
        more="Computes from the lake which messages existed at an instant, and writes them to the "
        "store of --data or --store, with their ids, dates and attempts; missing queues are "
        "created with their settings. Messages that the store knows are not changed, so the "
        "command can be repeated if it was killed. For finished messages see penstock pipeline "
        "resend.",
        examples=(
            "penstock pipeline restore --at 2030-01-31T12:00Z --lake /lake --data ./new --dry-run",
            "penstock pipeline restore --at 2030-01-31T12:00Z --lake /lake --data ./new "
            "--queue mail --rate 500",
        ),
    ),
    "pipeline resend": SparkCommand(
        _resend,
        argument("NAME", "name of this resend; the same name sends nothing twice"),
        flag(
            "--from",
            "only messages that ended at this instant or later",
            type=instant,
            required=True,
        ),
        flag("--to", "only messages that ended before this instant", type=instant, required=True),
        flag(
            "--outcome",
            "only messages that ended done, dead or cancelled; may be repeated; default dead",
            action="append",
            choices=["done", "dead", "cancelled"],
            default=[],
        ),
        flag(
            "--to-queue", "queue to send them to; default: the queue each ended in", value="QUEUE"
        ),
        flag(
            "--target",
            "http://…, sqlite:///path or postgresql://…",
            value="URL",
            default=DEFAULT_SERVER,
        ),
        flag("--key", "API key, if the server requires one", value="SECRET", env="PENSTOCK_KEY"),
        *_flags("sent"),
        more="Sends finished messages again, as new messages with the bodies from the lake, to a "
        "server or a store. For 30 days the same name sends no message twice.",
        examples=(
            "penstock pipeline resend outage --from 2030-01-31T12:00Z --to 2030-01-31T13:00Z "
            "--dry-run",
        ),
    ),
}
