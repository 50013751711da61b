"""`penstock pipeline stream`"""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from penstock.edge.cli.kit.command import flag
from penstock.edge.cli.kit.flags import duration
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.pipeline.shared import SparkCommand, open_lake
from penstock.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from penstock.pipeline.lake import SparkLake

LAKE, STORE = "lake", "store"
MAX_FILES = 200  # limit per batch
_POLL_S = 1


def _run(settings: Settings, args: Namespace, out: Output) -> None:
    from penstock.pipeline.streaming import start

    with open_lake(args, settings, may_be_empty=args.live) as lake:
        tables = _live(lake.spark, settings.store_url) if args.live else _archived(lake)
        query = start(
            lake,
            *tables,
            every_s=None if args.once else args.every / 1000,
            name=STORE if args.live else LAKE,
        )
        try:
            _report_batches(query, out)
        finally:
            query.stop()


def _archived(lake: SparkLake) -> list[DataFrame]:
    from penstock.pipeline.streaming import TABLES, lake_stream

    return [lake_stream(lake.spark, lake.folder, table, most_files=MAX_FILES) for table in TABLES]


def _live(spark: SparkSession, url: str) -> list[DataFrame]:
    from penstock.client.spark import register
    from penstock.pipeline.streaming import TABLES

    register(spark)
    source = spark.readStream.format("penstock").option("url", url)
    return [source.option("table", table.name).load() for table in TABLES]


def _report_batches(query: StreamingQuery, out: Output) -> None:
    """Report each batch until the stream ends; raise the error that stopped it."""
    reported, is_active = -1, True
    while is_active:
        is_active = not query.awaitTermination(_POLL_S)
        for batch in query.recentProgress:
            if batch.batchId > reported and batch.numInputRows:
                number, rows, at = batch.batchId, batch.numInputRows, batch.timestamp
                record = {"batch": number, "rows": rows, "at": at}
                out.result(record, f"batch {number}: {rows} rows added, {at}")
            reported = max(reported, batch.batchId)


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
