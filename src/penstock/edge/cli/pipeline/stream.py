"""`penstock pipeline stream`"""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.flags import duration
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.parser import Parser
from penstock.edge.cli.pipeline.shared import lake_flags, lake_of, loaded_settings, session
from penstock.edge.cli.registry import Command

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from penstock.pipeline.lake import SparkLake

LAKE, STORE = "lake", "store"
MOST_FILES = 200  # of one batch
_LOOK_S = 1


def _configure(parser: Parser) -> None:
    parser.flag(
        "--every", value="TIME", text="how often; default 30s", type=duration, default=30_000
    )
    parser.flag("--once", text="add what is there and end")
    parser.flag("--live", text="read the store itself, not the lake: nothing need be archived")
    lake_flags(parser)


def _run(args: Namespace, out: Output) -> int:
    from penstock.pipeline.session import check_installed

    check_installed()
    from penstock.pipeline.streaming import start

    settings = loaded_settings(args)
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
            _tell(query, out)
        finally:
            query.stop()
    return exits.OK


def _archived(spark: SparkSession, lake: SparkLake) -> list[DataFrame]:
    from penstock.pipeline.streaming import TABLES, lake_stream

    return [lake_stream(spark, lake.folder, table, most_files=MOST_FILES) for table in TABLES]


def _live(spark: SparkSession, url: str) -> list[DataFrame]:
    from penstock.client.spark import register
    from penstock.pipeline.streaming import TABLES

    register(spark)
    source = spark.readStream.format("penstock").option("url", url)
    return [source.option("table", table.name).load() for table in TABLES]


def _tell(query: StreamingQuery, out: Output) -> None:
    """Each batch, until the stream ends; raises what has ended it otherwise."""
    told, is_active = -1, True
    while is_active:
        is_active = not query.awaitTermination(_LOOK_S)
        for batch in query.recentProgress:
            if batch.batchId > told and batch.numInputRows:
                said = {"batch": batch.batchId, "rows": batch.numInputRows, "at": batch.timestamp}
                if out.json:
                    out.record(said)
                else:
                    out.line(f"batch {said['batch']}: {said['rows']} rows added, {said['at']}")
            told = max(told, batch.batchId)


COMMANDS = {
    "pipeline stream": Command(
        _run,
        _configure,
        more="Runs until it is stopped and adds to the table rollups what the archiver adds to the "
        "lake. It can be killed at any moment and started again: it goes on where it was, and "
        "nothing is counted twice.",
        examples=(
            "penstock pipeline stream --data ./data",
            "penstock pipeline stream --data ./data --live --every 10s",
            "penstock pipeline stream --lake /srv/lake --once",
        ),
    )
}
