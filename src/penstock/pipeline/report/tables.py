"""Reads the rows that the report shows, which are few, however many messages there were."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.domain.insights.answer import Answer
from penstock.domain.insights.questions import QUESTIONS, answer
from penstock.domain.limits import DAY, HOUR, MINUTE
from penstock.pipeline.histogram import Histograms, merge, percentile
from penstock.pipeline.lake import SparkLake
from penstock.pipeline.registry import job_of
from penstock.pipeline.runner import DaySpan
from penstock.pipeline.runs import RunLog

TOP = 6  # the number of queues and routes shown: the busiest
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

    def queues(self) -> Rows:
        """Totals of the whole span, the busiest first."""
        days = self._read("rollups").where("grain = 'day' AND dimension = 'queue'")
        return _added(_rows(days.select("name", *_SUMS, "wait_histogram")))

    def rollups(self, names: Collection[str]) -> Rows:
        wanted = self._read("rollups").where(
            (F.col("grain") == self.grain)
            & (F.col("dimension") == "queue")
            & F.col("name").isin(sorted(names))
        )
        return _rows(wanted.drop("wait_histogram", "service_histogram").orderBy("name", "at"))

    def circuits(self) -> Rows:
        facts = self._read("facts").where(F.col("kind").isin(*CIRCUIT_STATES))
        pattern = F.get_json_object("data", "$.pattern")
        return _rows(
            facts.select(
                "at", "kind", F.coalesce(pattern, "subject").alias("route"), "fact_no"
            ).orderBy("at", "fact_no")
        )

    def tuning(self) -> Rows:
        """The last replayed day."""
        return self._last("breaker_tuning", "route", "rank")

    def backtests(self, names: Collection[str]) -> Rows:
        rows = self._last("scaling_backtest", "queue", "worker_hours")
        return [row for row in rows if row["queue"] in names]

    def capacity(self) -> Rows:
        return _rows(self._read("capacity").orderBy("dt", "queue"))

    def targets(self) -> Rows:
        return self._last("slo", "queue", "objective")

    def answers(self) -> list[Answer]:
        """To all questions, from the days of the span."""
        ran = {run.job for run in RunLog(self._lake.spark, self._lake).last().values()}
        return [
            answer(question, {name: self._computed(name, ran) for name in question.tables})
            for question in QUESTIONS.values()
        ]

    def _computed(self, table: str, ran: Collection[str]) -> Rows | None:
        """The rows of the span; None: its job never ran.  A job may leave no rows, so no files."""
        days = self._lake.files(table)
        if not days and job_of(table) not in ran:
            return None
        return _rows(self._lake.read(table, [day for day in days if day in self._span]))

    def _last(self, table: str, *order: str) -> Rows:
        days = [day for day in self._lake.files(table) if day in set(self.days)]
        return _rows(self._lake.read(table, days[-1:]).orderBy(*order)) if days else []

    def _read(self, table: str) -> DataFrame:
        return self._lake.read(table, self.days)


def _rows(table: DataFrame) -> Rows:
    return [row.asDict(recursive=True) for row in table.collect()]


def _added(rows: Rows) -> Rows:
    """One row per name, with the sums of its days."""
    by_name: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by_name.setdefault(row["name"], []).append(row)
    added = []
    for name, days in by_name.items():
        sums = {key: sum(day[key] or 0 for day in days) for key in _SUMS}
        histograms = [day["wait_histogram"] for day in days]
        added.append({"name": name, **sums, "wait_histograms": histograms})
    return sorted(added, key=lambda row: (-row["finished"], row["name"]))


def percentile_of(histograms: Sequence[dict[int, int] | None], share: float) -> int | None:
    """A percentile of all histograms together; None if they are empty."""
    known = [one for one in histograms if one]
    if not known:
        return None
    sizes = np.array([len(one) for one in known])
    flat = Histograms(
        np.concatenate(([0], np.cumsum(sizes))),
        np.array([bucket for one in known for bucket in sorted(one)], dtype=np.int64),
        np.array([one[bucket] for one in known for bucket in sorted(one)], dtype=np.int64),
    )
    value, is_missing = percentile(merge(flat, np.zeros(len(known), dtype=np.int64), of=1), share)
    return None if is_missing[0] else int(value[0])
