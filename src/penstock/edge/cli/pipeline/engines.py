"""Commands that read the lake with Spark, or without it if the lake is small."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from penstock.domain.errors import InvalidRequest
from penstock.domain.lake.layout import LakeTable
from penstock.domain.optional_parts import not_installed
from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.command import Part, StoreCommand, flag
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.operate.archive import lake_flag, lake_folder, tables_flag
from penstock.edge.cli.pipeline.failures import report_failures
from penstock.edge.cli.pipeline.spark_command import (
    open_lake,
    session_flags,
)
from penstock.settings import Settings

if TYPE_CHECKING:
    from penstock.pipeline.files.local_lake import LocalLake
    from penstock.pipeline.lake import SparkLake

LOCAL, SPARK = "local", "spark"
MAX_LOCAL_BYTES = 1024**3  # of the files that may have to be read; larger lakes are for Spark

_engine_flag = flag(
    "--engine",
    "local: in this process, without Java; spark; default: local if Spark is not installed or the "
    "files to read have at most 1 GiB, otherwise spark",
    choices=[LOCAL, SPARK],
)


class LakeCommand(StoreCommand):
    """Needs a lake, and Spark only if the lake is large."""

    def __init__(self, run: Callable[..., int | None], *parts: Part, **help_texts: Any) -> None:
        super().__init__(
            run, *parts, _engine_flag, lake_flag, tables_flag, session_flags, **help_texts
        )

    def _call(self, args: Namespace, out: Output) -> int | None:
        return report_failures(args, lambda: super(LakeCommand, self)._call(args, out))


def run_on_lake(
    args: Namespace,
    settings: Settings,
    tables: Sequence[LakeTable],
    *,
    local: Callable[[LocalLake], int],
    spark: Callable[[SparkLake], int],
) -> int:
    """Call one of the functions; `tables` are those it reads.

    `local` must read all that it keeps before it writes anything: it is repeated with Spark if the
    lake turns out to be too large.
    """
    lake = None if args.engine == SPARK else _local_lake(args, settings, tables)
    if lake is None:
        return _with_spark(args, settings, spark)
    from penstock.pipeline.files.local_lake import TOO_LARGE
    from penstock.pipeline.spark.stopped import PipelineStopped

    try:
        return local(lake)
    except PipelineStopped as stopped:
        if args.engine is None and stopped.code == TOO_LARGE and _has_spark():
            exits.note("the lake is too large for one process: continuing with Spark")
            return _with_spark(args, settings, spark)
        raise


def open_local_lake(settings: Settings) -> LocalLake:
    """Raises PipelineStopped if pyarrow cannot open it, InvalidRequest if nothing is in it."""
    if find_spec("pyarrow") is None:
        raise InvalidRequest(not_installed("archive support", "archive"))
    from penstock.pipeline.files.local_lake import LocalLake

    lake = LocalLake(lake_folder(settings))
    if lake.is_empty():
        raise InvalidRequest(f"the lake {lake.folder} is empty; run penstock archive run first")
    return lake


def _local_lake(
    args: Namespace, settings: Settings, tables: Sequence[LakeTable]
) -> LocalLake | None:
    """None: this is a lake for Spark."""
    from penstock.pipeline.spark.stopped import PipelineStopped

    may_choose = args.engine is None and _has_spark()
    try:
        lake = open_local_lake(settings)
    except PipelineStopped as stopped:
        if may_choose:
            return None
        raise InvalidRequest(str(stopped)) from stopped
    size = sum(file.size for table in tables for file in lake.files(table))
    return None if may_choose and size > MAX_LOCAL_BYTES else lake


def _with_spark(args: Namespace, settings: Settings, run: Callable[[SparkLake], int]) -> int:
    from penstock.pipeline.session import check_installed

    check_installed()
    with open_lake(args, settings) as lake:
        return run(lake)


def _has_spark() -> bool:
    return find_spec("pyspark") is not None
