"""`penstock pipeline restore`: put messages from the lake back into a store, as they were."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any

from penstock.domain.datetimes import instant_of
from penstock.domain.lake import layout
from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.command import flag
from penstock.edge.cli.kit.flags import instant
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.progress import progress
from penstock.edge.cli.kit.throttle import Throttle
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
    from penstock.pipeline.restore.rules import RestoreSource, Row
    from penstock.services.lake import Restored, RestoreService

_TABLES = (layout.HISTORY, layout.BODIES, layout.ATTEMPTS, layout.SNAPSHOTS)


def _restore(settings: Settings, args: Namespace, out: Output) -> int:
    from penstock.pipeline.restore.rules import RestoreFilter

    at = instant_of(args.at)
    wanted: RestoreFilter = restore_filter(args)

    def local(lake: LocalLake) -> int:
        from penstock.pipeline.restore.local import LocalRestore

        source = LocalRestore(lake, at=at, wanted=wanted)
        return _restore_from(source, settings, args, out, lake_id=lake.lake_id())

    def spark(lake: SparkLake) -> int:
        from penstock.pipeline.restore.spark import SparkRestore

        source = SparkRestore(lake, at=at, wanted=wanted)
        return _restore_from(source, settings, args, out, lake_id=_lake_id(lake.folder))

    return run_on_lake(args, settings, _TABLES, local=local, spark=spark)


def _restore_from(
    source: RestoreSource, settings: Settings, args: Namespace, out: Output, *, lake_id: str | None
) -> int:
    if source.bounds.next_no is None:
        exits.note(
            "the lake has no snapshot at or after that instant: unfinished messages that were "
            "sent after the last snapshot are missing"
        )
    with ExitStack() as stack:

        def open_store() -> RestoreService:
            from penstock.services.lake import RestoreService
            from penstock.wiring.broker import open_broker

            broker = stack.enter_context(closing(open_broker(settings)))
            return RestoreService(broker.store, broker.clock, lake_id=lake_id)

        path = settings.sqlite_path
        # Opening a new store would create it.
        service = open_store() if path is None or path.exists() else None
        counts = count(source.heads(), _known_ids(service))
        show_counts(counts, out)
        if args.dry_run or not counts:
            return exits.OK
        service = service or open_store()
        named = {row["queue"] for row in counts}
        queues = source.queue_settings()
        service.make_queues({name: text for name, text in queues.items() if name in named})
        total = sum(row["messages"] for row in counts)
        done = _put(service, source, total, make_throttle(args))
    if done.of_flows:
        exits.note(
            f"{done.of_flows} of the restored messages were members of flows: they run as messages "
            "of their own; members that waited for others are not in the lake"
        )
    return report(done, out, what="restored", known="already present")


def _known_ids(service: RestoreService | None) -> Callable[[Sequence[Row]], set[str]]:
    return (lambda rows: set()) if service is None else service.known_ids


def _put(service: Any, source: RestoreSource, total: int, throttle: Throttle) -> Restored:
    from penstock.services.lake import Restored

    done = Restored()
    with progress("Restoring", total) as advance:
        for chunk in chunks(source.rows(), throttle.most):
            throttle.wait_for(len(chunk))
            done += service.put(chunk).result()
            advance(done.restored + done.known, total)
    return done


def _lake_id(folder: str) -> str | None:
    """None if it cannot be reached from this machine: then only the store's history is compared."""
    from penstock.pipeline.files.local_lake import LocalLake
    from penstock.pipeline.spark.stopped import PipelineStopped

    try:
        return LocalLake(folder).lake_id()
    except (PipelineStopped, OSError):
        exits.note(
            "the id of the lake cannot be reached from this machine: messages that ended after "
            "the instant are recognised only while the store keeps its history"
        )
        return None


COMMANDS = {
    "pipeline restore": LakeCommand(
        _restore,
        flag("--at", "the instant to restore, in ISO 8601", type=instant, required=True),
        flag(
            "--state",
            "only waiting, ready (including leased) or dead messages; may be repeated",
            action="append",
            choices=["waiting", "ready", "dead"],
            default=[],
        ),
        *filter_flags("restored"),
        more="Computes from the lake which messages existed at an instant, and writes them to the "
        "store of --data or --store, with their ids, dates and attempts; missing queues are "
        "created with their settings. The store may be in use by a running server. Messages that "
        "the store knows are not changed, so the command can be repeated, even if it was killed. "
        "For finished messages see penstock pipeline resend.",
        examples=(
            "penstock pipeline restore --at 2030-01-31T12:00Z --lake /lake --data ./new --dry-run",
            "penstock pipeline restore --at 2030-01-31T12:00Z --lake /lake --data ./new "
            "--queue mail --rate 500",
            "penstock pipeline restore --at 2030-01-31T12:00Z --data ./data --tag tenant-7 "
            "--engine local",
        ),
    ),
}
