"""Shared parts of the pipeline commands: flags, Spark session, lake and settings."""

from __future__ import annotations

from argparse import ArgumentTypeError, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from typing import TYPE_CHECKING

from penstock.domain.errors import InvalidRequest
from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.flags import pair, store_flags
from penstock.edge.cli.kit.parser import Parser
from penstock.edge.cli.kit.progress import progress
from penstock.edge.cli.operate.archive import lake_flag
from penstock.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.pipeline.job import PipelineJob
    from penstock.pipeline.lake import SparkLake
    from penstock.pipeline.runs import JobRun

RUN_COLUMNS = ("job", "day", "status", "rows in", "rows out", "note")


def lake_flags(parser: Parser) -> None:
    lake_flag(parser)
    parser.flag(
        "--derived",
        "folder of the computed tables; default: derived in the lake",
        value="FOLDER",
        env="PENSTOCK_PIPELINE_DERIVED",
    )
    session_flags(parser)
    store_flags(parser)


def session_flags(parser: Parser) -> None:
    parser.flag(
        "--master",
        "where Spark runs: local[*], spark://…, yarn, k8s://…, or sc://… for Spark Connect; "
        "default: that of spark-submit, or local[*]",
        value="URL",
        env="PENSTOCK_PIPELINE_MASTER",
    )
    parser.flag(
        "--conf",
        "a setting of Spark; may be repeated",
        value="KEY=VALUE",
        env="PENSTOCK_PIPELINE_CONF",
        action="append",
        type=pair,
        default=[],
    )


def day(text: str) -> str:
    """Parse a day; return it in the form that the lake uses."""
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not a day such as 2030-01-31") from None


@contextmanager
def session(args: Namespace) -> Iterator[SparkSession]:
    """A Spark session for one command, with a progress bar."""
    from penstock.pipeline.progress import report_progress
    from penstock.pipeline.session import open_session

    with progress("Starting Spark"):
        spark = open_session(args.master, more=dict(args.conf))
    try:
        with progress("Computing") as advance, report_progress(spark, advance):
            yield spark
    finally:
        spark.stop()


def lake_of(
    args: Namespace, settings: Settings, spark: SparkSession, *, may_be_empty: bool = False
) -> SparkLake:
    from penstock.pipeline.lake import SparkLake

    # A URL such as s3a://… must not be made an absolute path.
    folder = settings.archive.folder or str(settings.lake_folder.absolute())
    lake = SparkLake(spark, folder, tables_folder=args.derived)
    if not may_be_empty and lake.is_empty():
        raise InvalidRequest(f"the lake {folder} is empty; see penstock archive run")
    return lake


def note_job(job: PipelineJob, days: int) -> None:
    """Report on stderr which job runs."""
    if days:
        exits.note(f"{job.name}: {days} {'day' if days == 1 else 'days'}")


def run_row(run: JobRun) -> tuple[object, ...]:
    rows_in, rows_out = sum(run.rows_in.values()), sum(run.rows_out.values())
    return run.job, run.dt, str(run.status), rows_in, rows_out, run.note
