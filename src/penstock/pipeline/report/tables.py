"""Reads the rows that the report shows, which are few, however many messages and queues there were.

Spark adds up, and picks the busiest queues and the worst routes; tables that answers are computed
from are streamed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.domain.insights.answer import Answer, Row
from penstock.domain.insights.breaker import ALL_ROUTES
from penstock.domain.insights.questions import QUESTIONS, answer
from penstock.domain.insights.replays import NOW
from penstock.domain.insights.storage import ALL as ALL_QUEUES
from penstock.domain.limits import DAY, HOUR, MINUTE
from penstock.pipeline.histogram import Histograms, percentile
from penstock.pipeline.lake import SparkLake
from penstock.pipeline.registry import job_of
from penstock.pipeline.runner import DaySpan
from penstock.pipeline.runs import RunLog
from penstock.pipeline.schemas import DT

TOP = 6  # queues whose graphs are shown: the busiest
MOST = 30  # circuits, routes and targets that are shown
MAX_CHANGES = 20_000  # of circuits
_MAX_HOURLY = 21  # days; more are shown by day
_SUMS = ("finished", "dead", "attempts", "failures")
GRAINS = {"minute": MINUTE, "hour": HOUR, "day": DAY}
CIRCUIT_STATES = {
    "circuit_opened": "open",
    "circuit_reopened": "open",
    "circuit_half_opened": "half_open",
    "circuit_closed": "closed",
    "circuit_removed": "closed",
}

Rows = Sequence[dict[str, Any]]


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    queues: int
    finished: int
    dead: int
    attempts: int
    failures: int
    waits: dict[int, int]  # histogram of the waits for the first claim


class Readings:
    """`days`: the days of the span that have data."""

    def __init__(self, lake: SparkLake, span: DaySpan) -> None:
        self._lake = lake
        self._span = span
        found = {day for table in ("rollups", "facts", "capacity") for day in lake.files(table)}
        self.days = sorted(day for day in found if day in span)

    @property
    def grain(self) -> str:
        """The finest grain that does not give a line too many points."""
        if len(self.days) <= 1:
            return "minute"
        return "hour" if len(self.days) <= _MAX_HOURLY else "day"

    def totals(self) -> Totals:
        """Of all queues, on all days."""
        days = self._queue_days()
        sums = days.agg(
            F.countDistinct("name").alias("queues"),
            *(F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in _SUMS),
        )
        [row] = _rows(sums)
        # One row per bucket of the histogram: there are some hundred.
        buckets = days.select(F.explode("wait_histogram").alias("bucket", "messages"))
        waits = _rows(buckets.groupBy("bucket").agg(F.sum("messages").alias("messages")))
        return Totals(**row, waits={one["bucket"]: one["messages"] for one in waits})

    def busiest(self) -> list[str]:
        by_name = self._queue_days().groupBy("name").agg(F.sum("finished").alias("finished"))
        busiest = by_name.orderBy(F.desc("finished"), "name").limit(TOP)
        return [row["name"] for row in _rows(busiest)]

    def rollups(self, names: Collection[str]) -> Rows:
        wanted = self._read("rollups").where(
            (F.col("grain") == self.grain)
            & (F.col("dimension") == "queue")
            & F.col("name").isin(sorted(names))
        )
        return _rows(wanted.drop("wait_histogram", "service_histogram").orderBy("name", "at"))

    def circuits(self) -> Rows:
        """The newest changes of the circuits that changed most often, in order of time."""
        pattern = F.get_json_object("data", "$.pattern")
        changes = self._read("facts").where(F.col("kind").isin(*CIRCUIT_STATES))
        changes = changes.select(
            "at", "kind", F.coalesce(pattern, "subject").alias("route"), "fact_no"
        )
        by_route = changes.groupBy("route").count().orderBy(F.desc("count"), "route")
        routes = [row["route"] for row in _rows(by_route.limit(MOST))]
        newest = changes.where(F.col("route").isin(routes)).orderBy(F.desc("at"), F.desc("fact_no"))
        return _rows(newest.limit(MAX_CHANGES))[::-1]

    def tuning(self) -> Rows:
        """The last replayed day: the settings in force and the recommended ones."""
        rows = self._last("breaker_tuning")
        best = rows.where("is_recommended").orderBy(
            F.col("route") != ALL_ROUTES, F.desc("outages"), "route"
        )
        routes = [row["route"] for row in _rows(best.select("route").limit(MOST))]
        chosen = rows.where(F.col("is_recommended") | (F.col("candidate") == NOW))
        return _rows(chosen.where(F.col("route").isin(routes)).orderBy("route", "rank"))

    def backtests(self, names: Collection[str]) -> Rows:
        rows = self._last("scaling_backtest").where(F.col("queue").isin(sorted(names)))
        return _rows(rows.orderBy("queue", "worker_hours"))

    def load(self) -> Rows:
        """All queues together, by day."""
        return _rows(self._read("capacity").where(F.col("queue") == ALL_QUEUES).orderBy("dt"))

    def last_loads(self) -> Rows:
        """All queues together on the last day, then the busiest."""
        rows = self._last("capacity").orderBy(
            F.col("queue") != ALL_QUEUES, F.desc("messages"), "queue"
        )
        return _rows(rows.limit(TOP + 1))

    def targets(self) -> Rows:
        """Those of the last day that used most of their budget."""
        worst = self._last("slo").orderBy(F.desc("burn"), "queue", "objective").limit(MOST)
        return sorted(_rows(worst), key=lambda row: (row["queue"], row["objective"]))

    def answers(self) -> list[Answer]:
        """To all questions, from the days of the span."""
        ran = {run.job for run in RunLog(self._lake.spark, self._lake).last().values()}
        return [
            answer(question, {name: self._computed(name, ran) for name in question.tables})
            for question in QUESTIONS.values()
        ]

    def _computed(self, table: str, ran: Collection[str]) -> SparkTable | None:
        """None: its job never ran.  A job may leave no rows, so no files."""
        days = self._lake.files(table)
        if not days and job_of(table) not in ran:
            return None
        return SparkTable(self._lake.read(table, [day for day in days if day in self._span]))

    def _last(self, table: str) -> DataFrame:
        """The last day that has rows."""
        days = [day for day in self._lake.files(table) if day in set(self.days)]
        return self._lake.read(table, days[-1:])

    def _queue_days(self) -> DataFrame:
        return self._read("rollups").where("grain = 'day' AND dimension = 'queue'")

    def _read(self, table: str) -> DataFrame:
        return self._lake.read(table, self.days)


class SparkTable:
    """A table that answers are computed from: the driver holds one partition at a time."""

    def __init__(self, table: DataFrame) -> None:
        self._table = table

    def rows(self, *columns: str, **only: Collection[Any]) -> Iterator[Row]:
        found = self._table.select(*dict.fromkeys((DT, *columns)))
        for name, values in only.items():
            known = F.col(name).isin([value for value in values if value is not None])
            found = found.where(known | F.col(name).isNull() if None in values else known)
        return (row.asDict() for row in found.orderBy(F.desc(DT)).toLocalIterator())


def _rows(table: DataFrame) -> Rows:
    return [row.asDict(recursive=True) for row in table.collect()]


def percentile_of(histogram: Mapping[int, int], share: float) -> int | None:
    """None if it is empty."""
    buckets = np.array(sorted(histogram), dtype=np.int64)
    counts = np.array([histogram[bucket] for bucket in sorted(histogram)], dtype=np.int64)
    one = Histograms(np.array([0, len(buckets)]), buckets, counts)
    value, is_missing = percentile(one, share)
    return None if is_missing[0] else int(value[0])
