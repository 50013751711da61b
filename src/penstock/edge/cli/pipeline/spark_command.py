"""Shared parts of the pipeline commands: flags, Spark session, lake and settings."""

from __future__ import annotations

import getpass
import os
import socket
from argparse import ArgumentTypeError, Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from typing import TYPE_CHECKING, Any

from penstock.domain.errors import InvalidRequest
from penstock.domain.lake.pipeline_settings import PipelineSettings
from penstock.domain.lake.run_lock import RunLock, new_lock
from penstock.domain.lake.tables import DELTA
from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.command import Part, StoreCommand, flag
from penstock.edge.cli.kit.flags import pair
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.parser import Parser
from penstock.edge.cli.kit.progress import progress
from penstock.edge.cli.kit.view import View
from penstock.edge.cli.operate.archive import (
    lake_flag,
    lake_folder,
    tables_flag,
    tables_folder,
)
from penstock.edge.cli.pipeline.failures import report_failures
from penstock.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.pipeline.files.lake_lock import LakeLock
    from penstock.pipeline.files.lock_files import LockFile
    from penstock.pipeline.job import PipelineJob
    from penstock.pipeline.lake import SparkLake
    from penstock.pipeline.runner import JobRunner
    from penstock.pipeline.runs import JobRun

MayWrite = Callable[[], None]
RUN = View(
    "job dt:day status rows_in rows_out note",
    status=lambda run: str(run.status),
    rows_in=lambda run: sum(run.rows_in.values()),
    rows_out=lambda run: sum(run.rows_out.values()),
)


class SparkCommand(StoreCommand):
    """Needs Spark and a lake."""

    def __init__(self, run: Callable[..., int | None], *parts: Part, **help_texts: Any) -> None:
        super().__init__(run, *parts, lake_flag, tables_flag, session_flags, **help_texts)

    def _call(self, args: Namespace, out: Output) -> int | None:
        from penstock.pipeline.session import check_installed

        check_installed()
        return report_failures(args, lambda: super(SparkCommand, self)._call(args, out))


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
    parser.flag("--verbose", "show Spark's log, and the details of an error")


def day(text: str) -> str:
    """Parse a day; return it in the form that the lake uses."""
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not a day such as 2030-01-31") from None


FROM = flag("--from", "first day, such as 2030-01-31", type=day)
TO = flag("--to", "last day, inclusive", type=day)


@contextmanager
def session(args: Namespace) -> Iterator[SparkSession]:
    """A Spark session for one command, with a progress bar unless Spark's log is shown."""
    from penstock.pipeline.session import open_session
    from penstock.pipeline.spark.progress import report_progress

    is_shown = not args.verbose
    with progress("Starting Spark", is_shown=is_shown):
        spark = open_session(args.master, more=dict(args.conf), is_verbose=args.verbose)
    try:
        with progress("Computing", is_shown=is_shown) as advance, report_progress(spark, advance):
            yield spark
    finally:
        spark.stop()


@contextmanager
def open_lake(
    args: Namespace, settings: Settings, *, may_be_empty: bool = False
) -> Iterator[SparkLake]:
    """The lake of the settings, in a Spark session of its own."""
    from penstock.pipeline.lake import SparkLake

    folder, tables = lake_folder(settings), tables_folder(settings, args)
    with session(args) as spark:
        is_delta = settings.pipeline.format == DELTA
        lake = SparkLake(spark, folder, tables_folder=tables, is_delta=is_delta)
        if not may_be_empty and lake.is_empty():
            raise InvalidRequest(f"the lake {folder} is empty; run penstock archive run first")
        yield lake


@contextmanager
def open_locked_lake(args: Namespace, settings: Settings) -> Iterator[tuple[SparkLake, MayWrite]]:
    """The lake, and a function that raises if the lock of its tables was lost."""
    from penstock.pipeline.files.lake_lock import wait_until_free
    from penstock.pipeline.files.lock_files import lock_file_here

    # Starting Spark takes seconds, and its memory is not needed while this run waits.
    file = lock_file_here(tables_folder(settings, args))
    if file is not None:
        wait_until_free(this_lock(file).holder, waits=args.wait, on_wait=_note_wait)
    with open_lake(args, settings) as lake, lock_tables(lake, waits=args.wait) as may_write:
        yield lake, may_write


def runner_of(
    lake: SparkLake,
    settings: PipelineSettings,
    may_write: MayWrite = lambda: None,
    on_done: Callable[[list[JobRun]], None] = lambda runs: None,
) -> JobRunner:
    from penstock.pipeline.gates import GATES
    from penstock.pipeline.runner import JobRunner
    from penstock.pipeline.session import now_ms

    return JobRunner(
        lake,
        settings,
        clock=lambda: now_ms(lake.spark),
        gates=GATES,
        on_job=note_job,
        on_done=on_done,
        may_write=may_write,
    )


@contextmanager
def lock_tables(lake: SparkLake, *, waits: bool) -> Iterator[MayWrite]:
    """Hold the lock of the lake's tables; yields a function that raises if it was lost."""
    from penstock.pipeline.files.lake_lock import acquired
    from penstock.pipeline.files.lock_files import lock_file

    file = lock_file(lake)
    if file is None:
        exits.note(
            "the tables cannot be reached from this machine: make sure that no other run is in "
            "progress"
        )
        yield lambda: None
        return
    with acquired(this_lock(file), waits=waits, on_wait=_note_wait) as lock:
        yield lock.check


def this_lock(file: LockFile, *, is_brief: bool = False) -> LakeLock:
    """The lock of this process, not acquired yet."""
    from penstock.pipeline.files.lake_lock import LakeLock
    from penstock.wiring.broker import wall_clock

    clock = wall_clock()
    return LakeLock(file, this_run(now=clock.now(), is_brief=is_brief), clock.now)


def _note_wait(other: RunLock) -> None:
    exits.note(f"waiting for {other}")


def this_run(*, now: int, is_brief: bool = False) -> RunLock:
    try:
        owner = getpass.getuser()
    except (KeyError, OSError):  # a container whose user has no name
        owner = str(os.getuid())
    return new_lock(
        owner=owner, host=socket.gethostname(), pid=os.getpid(), now=now, is_brief=is_brief
    )


def note_job(job: PipelineJob, days: int) -> None:
    """Report on stderr which job runs."""
    if days:
        exits.note(f"{job.name}: {days} {'day' if days == 1 else 'days'}")
