"""`penstock pipeline stream`"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import datetime
from typing import TYPE_CHECKING, Any

from penstock.domain.datetimes import instant_of
from penstock.domain.limits import MINUTE
from penstock.edge.cli.kit.command import flag
from penstock.edge.cli.kit.flags import duration
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.pipeline.spark_command import MayWrite, SparkCommand, open_lake, this_lock
from penstock.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.listener import StreamingQueryProgress
    from pyspark.sql.streaming.query import StreamingQuery

    from penstock.domain.lake.layout import LakeTable
    from penstock.pipeline.lake import SparkLake
    from penstock.pipeline.streaming import Locked, StreamSource

MAX_FILES = 200  # limit per batch
_POLL_S = 1
_IDLE_MS = MINUTE  # between two reports while there are no rows
_BUSY = "another stream is using these tables: {}; run one stream per lake"


def _run(settings: Settings, args: Namespace, out: Output) -> None:
    from penstock.pipeline.streaming import LAKE, start

    with open_lake(args, settings, may_be_empty=args.live) as lake, _alone(lake) as check:
        tables = _live(lake.spark, settings.store_url) if args.live else _archived(lake)
        query = start(
            lake,
            *tables,
            every_s=None if args.once else args.every / 1000,
            name="store" if args.live else "lake",
            source=_store(settings.store_url) if args.live else LAKE,
            locked=_between_runs(lake),
        )
        try:
            _report_batches(query, out, check)
        finally:
            query.stop()


@contextmanager
def _alone(lake: SparkLake) -> Iterator[MayWrite]:
    """Hold the lock of streams on these tables; yields a function that raises if it was lost."""
    from penstock.pipeline.files.lake_lock import acquired
    from penstock.pipeline.files.lock_files import STREAM, lock_file

    file = lock_file(lake, STREAM)
    if file is None:
        yield lambda: None
        return
    with acquired(this_lock(file), waits=False, busy=_BUSY) as lock:
        yield lock.check


def _between_runs(lake: SparkLake) -> Locked:
    """Hold the lock of runs while rollups are replaced; wait for a run that has it."""
    from penstock.pipeline.files.lake_lock import acquired
    from penstock.pipeline.files.lock_files import lock_file
    from penstock.pipeline.spark.progress import is_remote

    # Through Spark Connect, the function that adds a batch runs at the server.
    file = None if is_remote(lake.spark) else lock_file(lake)
    if file is None:
        return nullcontext
    lock = this_lock(file, is_brief=True)
    return lambda: acquired(lock, waits=True)


def _archived(lake: SparkLake) -> list[DataFrame]:
    from penstock.pipeline.streaming import TABLES, lake_stream

    return [lake_stream(lake.spark, lake.folder, table, most_files=MAX_FILES) for table in TABLES]


def _live(spark: SparkSession, url: str) -> list[DataFrame]:
    from penstock.client.spark import register
    from penstock.pipeline.streaming import TABLES

    register(spark)
    source = spark.readStream.format("penstock").option("url", url)
    return [source.option("table", table.name).load() for table in TABLES]


def _store(url: str) -> StreamSource:
    """Reads a day again from the store, whose rows do not change."""
    from penstock.pipeline.streaming import StreamSource, no_files

    def read(lake: SparkLake, table: LakeTable, days: list[str]) -> DataFrame:
        reader = lake.spark.read.format("penstock").option("url", url)
        rows = reader.option("table", table.name).load()
        return rows.where(rows["dt"].isin(days))

    return StreamSource(read, no_files)


def _report_batches(query: StreamingQuery, out: Output, check: MayWrite) -> None:
    """Report each batch until the stream ends; raise the error that stopped it."""
    records, is_active = BatchRecords(), True
    while is_active:
        is_active = not query.awaitTermination(_POLL_S)
        check()
        for record in records.new(query.recentProgress):
            out.result(record, _line(record))


class BatchRecords:
    """One record for each batch that has rows, and one for each minute without any.

    `lag_ms` is the age of the newest row that was added, when the batch was complete; null: the
    stream has not added a valid row since it was started.
    """

    def __init__(self) -> None:
        self._latest = ""  # the progress that was looked at last
        self._reported_at: int | None = None
        self._newest_at: int | None = None

    def new(self, recent: Iterable[StreamingQueryProgress]) -> Iterator[dict[str, Any]]:
        """Of what Spark keeps: its latest progresses, oldest first."""
        for progress in recent:
            if progress.timestamp > self._latest:
                self._latest = progress.timestamp
                yield from self._of(progress)

    def _of(self, progress: StreamingQueryProgress) -> Iterator[dict[str, Any]]:
        took_ms = progress.durationMs["triggerExecution"]
        ended_at = instant_of(datetime.fromisoformat(progress.timestamp)) + took_ms
        if progress.numInputRows:
            self._newest_at = _latest(self._newest_at, _newest_at(progress))
        else:
            self._reported_at = self._reported_at or ended_at
            if ended_at < self._reported_at + _IDLE_MS:
                return
        self._reported_at = ended_at
        yield {
            "batch": progress.batchId,
            "rows": progress.numInputRows,
            "at": progress.timestamp,
            "per_second": round(progress.numInputRows * 1000 / max(took_ms, 1), 1),
            "lag_ms": None if self._newest_at is None else ended_at - self._newest_at,
        }


def _newest_at(progress: StreamingQueryProgress) -> int | None:
    from penstock.pipeline.streaming import NEWEST

    newest = progress.observedMetrics.get(NEWEST)
    return None if newest is None else newest["at"]


def _latest(*instants: int | None) -> int | None:
    return max((at for at in instants if at is not None), default=None)


def _line(record: dict[str, Any]) -> str:
    lag = "" if record["lag_ms"] is None else f", newest {record['lag_ms'] / 1000:,.1f} s old"
    number, rows, rate = record["batch"], record["rows"], record["per_second"]
    if not rows:
        return f"no new rows{lag}, {record['at']}"
    return f"batch {number}: {rows} rows added ({rate:,.0f}/s){lag}, {record['at']}"


COMMANDS = {
    "pipeline stream": SparkCommand(
        _run,
        flag("--every", "interval between batches", value="TIME", type=duration, default=30_000),
        flag("--once", "process the available data and exit"),
        flag("--live", "read the store instead of the lake; nothing needs to be archived"),
        more="Runs until it is stopped, and adds new data of the lake to the table rollups. It can "
        "be killed at any time: started again, it continues where it stopped and counts nothing "
        "twice.",
        examples=(
            "penstock pipeline stream --data ./data",
            "penstock pipeline stream --data ./data --live --every 10s",
            "penstock pipeline stream --lake /srv/lake --once",
        ),
    )
}
