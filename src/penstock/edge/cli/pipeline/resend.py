"""`penstock pipeline resend`: send messages of the lake that have ended again, as new ones."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.domain.datetimes import instant_of
from penstock.domain.errors import PenstockError
from penstock.domain.lake import layout
from penstock.domain.limits import DAY
from penstock.domain.message.draft import Draft
from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.command import argument, flag
from penstock.edge.cli.kit.flags import DEFAULT_SERVER, instant
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.progress import progress
from penstock.edge.cli.pipeline.engines import LakeCommand, run_on_lake
from penstock.edge.cli.pipeline.message_selection import (
    chunks,
    count,
    filter_flags,
    make_throttle,
    report,
    restore_filter,
    show_counts,
)
from penstock.settings import Settings

if TYPE_CHECKING:
    from penstock.pipeline.files.local_lake import LocalLake
    from penstock.pipeline.lake import SparkLake
    from penstock.pipeline.restore.rules import EndedSource, Row
    from penstock.services.lake import Restored

WINDOW_MS = 30 * DAY  # time in which a resend of the same name sends nothing twice
_TABLES = (layout.HISTORY, layout.BODIES)


def _resend(settings: Settings, args: Namespace, out: Output) -> int:
    selected: dict[str, Any] = {
        "from_at": instant_of(getattr(args, "from")),
        "to_at": instant_of(args.to),
        "outcomes": args.outcome or ["dead"],
        "wanted": restore_filter(args),
    }

    def local(lake: LocalLake) -> int:
        from penstock.pipeline.restore.local import LocalEnded

        return _resend_from(LocalEnded(lake, **selected), args, out)

    def spark(lake: SparkLake) -> int:
        from penstock.pipeline.restore.spark import SparkEnded

        return _resend_from(SparkEnded(lake, **selected), args, out)

    return run_on_lake(args, settings, _TABLES, local=local, spark=spark)


def _resend_from(source: EndedSource, args: Namespace, out: Output) -> int:
    from penstock.client.app import Penstock

    counts = count(source.heads())
    show_counts(counts, out)
    if args.dry_run or not counts:
        return exits.OK
    with Penstock(args.target, key=args.key) as app:
        done = _send(app, source.rows(), args, sum(row["messages"] for row in counts))
    return report(done, out, what="sent", known="sent before")


def _send(app: Any, rows: Iterable[Row], args: Namespace, total: int) -> Restored:
    from penstock.services.lake import Restored

    done = Restored()
    throttle = make_throttle(args)
    with progress("Sending", total) as advance:
        for chunk in chunks(rows, throttle.most):
            by_queue: dict[str, list[Row]] = {}
            for row in chunk:
                if row["body"] is None:
                    done += Restored(without_body=1)
                else:
                    by_queue.setdefault(args.to_queue or row["queue"], []).append(row)
            for queue, some in by_queue.items():
                throttle.wait_for(len(some))
                drafts = [_draft(row, args.name) for row in some]
                for row, result in zip(some, app.backend.send(queue, drafts), strict=True):
                    done += _result_of(row["id"], result)
            advance(done.restored + done.known, total)
    return done


def _result_of(message_id: str, result: Any) -> Restored:
    from penstock.services.lake import Restored

    if isinstance(result, PenstockError):
        return Restored(refused=((message_id, f"{result} ({result.code})"),))
    return Restored(known=1) if result.is_duplicate else Restored(restored=1)


def _draft(row: Row, name: str) -> Draft:
    """A new message with the same content, without the old one's attempts and instants."""
    attributes = None if row["attributes"] is None else msgspec.json.decode(row["attributes"])
    return Draft(
        body=row["body"],
        attributes=attributes,
        kind=row["kind"],
        entity_id=row["entity_id"],
        tags=tuple(tag for tag in (row["tag1"], row["tag2"]) if tag is not None),
        group=row["group_key"],
        priority=row["priority"],
        route=row["route"],
        trace=row["trace"],
        dedup_key=f"resend:{name}:{row['dt']}:{row['history_no']}",
        dedup_window_ms=WINDOW_MS,
    )


COMMANDS = {
    "pipeline resend": LakeCommand(
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
        *filter_flags("sent"),
        more="Sends finished messages again, as new messages with the bodies from the lake, to a "
        "server or a store. For 30 days the same name sends no message twice.",
        examples=(
            "penstock pipeline resend outage --from 2030-01-31T12:00Z --to 2030-01-31T13:00Z "
            "--dry-run",
        ),
    ),
}
