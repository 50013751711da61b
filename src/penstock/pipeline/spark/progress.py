"""Reports Spark's progress: completed tasks of those known so far."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVERY_S = 0.5
OnProgress = Callable[[int, int | None], None]  # done, total


@contextmanager
def report_progress(
    spark: SparkSession, report: OnProgress, *, every_s: float = EVERY_S
) -> Iterator[None]:
    """Inside the block, call `report` with the completed and known tasks of the running stages."""
    if is_remote(spark):
        handler = _handler(report)
        spark.registerProgressHandler(handler)
        try:
            yield
        finally:
            spark.removeProgressHandler(handler)
        return
    stop = threading.Event()
    watcher = threading.Thread(target=_watch, args=(spark, report, stop, every_s), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        stop.set()
        watcher.join()


def is_remote(spark: SparkSession) -> bool:
    """True for Spark Connect: the session runs in another process."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def _watch(spark: SparkSession, report: OnProgress, stop: threading.Event, every_s: float) -> None:
    tracker = spark.sparkContext.statusTracker()
    while not stop.wait(every_s):
        found = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        stages = [info for info in found if info is not None]
        if stages:
            report(sum(s.numCompletedTasks for s in stages), sum(s.numTasks for s in stages))


def _handler(report: OnProgress) -> Any:
    def on_progress(stages: Any, inflight_tasks: int, operation_id: str | None, done: bool) -> None:
        if stages:
            report(sum(s.num_completed_tasks for s in stages), sum(s.num_tasks for s in stages))

    return on_progress
