"""`penstock pipeline stream`"""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.flags import duration
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.parser import Parser
from penstock.edge.cli.operate.archive import settings_of
from penstock.edge.cli.pipeline.shared import lake_flags, lake_of, session
from penstock.edge.cli.registry import Command

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from penstock.pipeline.lake import SparkLake

LAKE, STORE = "lake", "store"
MAX_FILES = 200  # limit per batch
_POLL_S = 1


def _configure(parser: Parser) -> None:
    parser.flag(
        "--every",
        value="TIME",
        text="interval between batches; default 30s",
        type=duration,
        default=30_000,
    )
    parser.flag("--once", text="process the available data and exit")
    parser.flag("--live", text="read the store instead of the lake; nothing needs to be archived")
    lake_flags(parser)


def _run(args: Namespace, out: Output) -> int:
    from penstock.pipeline.session import check_installed

    check_installed()
    from penstock.pipeline.streaming import start

    settings = settings_of(args)
    with session(args) as spark:
        lake = lake_of(args, settings, spark, may_be_empty=args.live)
        tables = _live(spark, settings.store_url) if args.live else _archived(spark, lake)
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
    return exits.OK


def _archived(spark: SparkSession, lake: SparkLake) -> list[DataFrame]:
    from penstock.pipeline.streaming import TABLES, lake_stream

    return [lake_stream(spark, lake.folder, table, most_files=MAX_FILES) for table in TABLES]


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
    "pipeline stream": Command(
        _run,
        _configure,
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
