"""Restores through Spark: collects the evidence of each message on the cluster.

The rules of pipeline/restore/rules.py run in Python on the workers.  Contents of messages do not
pass through them: they are joined afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from operator import or_
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from penstock.domain.lake import layout as lake
from penstock.pipeline.job import Tables
from penstock.pipeline.lake import SparkLake
from penstock.pipeline.restore import rules
from penstock.pipeline.restore.rules import (
    CONTENT,
    DECIDED,
    ENDED_AT,
    FINAL,
    HEAD,
    Bounds,
    Evidence,
    RestoreFilter,
    Row,
)
from penstock.pipeline.schemas import DT, fields_of

INPUTS = ("history", "bodies", "attempts", "snapshots")
_HEAD_NAMES = [column.name for column in HEAD]
# Files may have nulls where the layout has none.
_SCHEMA = T.StructType([T.StructField(f.name, f.dataType) for f in fields_of(DECIDED)])
_NO = "message_no"


class SparkRestore:
    """The messages that were live at an instant."""

    def __init__(self, lake_: SparkLake, *, at: int, wanted: RestoreFilter | None = None) -> None:
        self._lake = lake_
        tables = tables_of(lake_)
        self.bounds = bounds_of(tables["snapshots"], at=at)
        self._rows = state_at(tables, at=at, bounds=self.bounds, wanted=wanted).cache()

    def heads(self) -> Iterator[Row]:
        return _heads(self._rows, "state", ENDED_AT)

    def rows(self) -> Iterator[Row]:
        return _local(self._rows.orderBy("order_no", _NO))

    def queue_settings(self) -> dict[str, str]:
        return queue_settings(self._lake, self.bounds)


class SparkEnded:
    """Messages that ended in a period, with their bodies."""

    def __init__(self, lake_: SparkLake, **selected: Any) -> None:
        """`selected`: as for `ended_messages`."""
        self._rows = ended_messages(tables_of(lake_), **selected).cache()

    def heads(self) -> Iterator[Row]:
        return _heads(self._rows, F.col("outcome").alias("state"))

    def rows(self) -> Iterator[Row]:
        return _local(self._rows.orderBy("queue", _NO, "finished_at"))


def state_at(
    tables: Tables, *, at: int, bounds: Bounds, wanted: RestoreFilter | None = None
) -> DataFrame:
    """One row per message, as a snapshot of that instant would have it, and ENDED_AT."""
    evidence = _evidence(tables, at=at, bounds=bounds)
    rows = evidence.mapInArrow(_decider(at, bounds, wanted or RestoreFilter()), _SCHEMA)
    # A message that was restored before may by now be in the lake under another number, too.
    place = F.row_number().over(Window.partitionBy("id").orderBy(_NO))
    once = rows.withColumn("place", place).where("place = 1").drop("place")
    ends = _ends(tables["history"], after=at)
    return _with_contents(once, tables).join(ends, "id", "left")


def tables_of(lake_: SparkLake) -> dict[str, DataFrame]:
    return {name: lake_.read(name) for name in INPUTS}


def bounds_of(snapshots: DataFrame, *, at: int) -> Bounds:
    taken = snapshots.select("taken_at", "snapshot_no").distinct().collect()
    return rules.bounds_of(((row.taken_at, row.snapshot_no) for row in taken), at=at)


def queue_settings(lake_: SparkLake, bounds: Bounds) -> dict[str, str]:
    """Settings of the queues in the nearest snapshot: JSON by queue name."""
    rows = lake_.read("queues").where(F.col("snapshot_no") == F.lit(bounds.nearest_no))
    return {row.queue: row.settings for row in rows.select("queue", "settings").collect()}


def ended_messages(
    tables: Tables, *, from_at: int, to_at: int, outcomes: Sequence[str], wanted: RestoreFilter
) -> DataFrame:
    """Messages that ended in a period, `from_at <= finished_at < to_at`, with their bodies."""
    history = tables["history"].where(
        (F.col(DT) >= lake.dt_of(from_at))
        & (F.col(DT) <= lake.dt_of(to_at))
        & (F.col("finished_at") >= from_at)
        & (F.col("finished_at") < to_at)
    )
    if outcomes:
        history = history.where(F.col("outcome").isin(*outcomes))
    bodies = tables["bodies"].select("history_no", DT, *CONTENT)
    return pick(history, wanted).join(bodies, ["history_no", DT], "left")


def pick(rows: DataFrame, wanted: RestoreFilter) -> DataFrame:
    for columns, values in wanted.stored_conditions():
        rows = rows.where(reduce(or_, (F.col(column).isin(*values) for column in columns)))
    return rows


def _evidence(tables: Tables, *, at: int, bounds: Bounds) -> DataFrame:
    """One row per message that was sent by the instant and had not finally ended by then."""
    was_sent = F.col("sent_at") <= at
    past, final = F.col("finished_at") <= at, F.col("outcome").isin(*FINAL)
    gone = tables["history"].where(past & final).select(_NO).distinct()
    endings = _collect(
        tables["history"].where(was_sent),
        "endings",
        [*(column.name for column in lake.HISTORY.columns), DT],
    )
    attempts = _collect(
        tables["attempts"].where(F.col("ended_at") <= at),
        "attempts",
        [column.name for column in lake.ATTEMPTS.columns],
    )
    snapshots = tables["snapshots"].where(was_sent)

    def snapshot(name: str, number: int | None) -> DataFrame:
        rows = snapshots.where(F.col("snapshot_no") == F.lit(number))
        return rows.select(_NO, F.struct(*_HEAD_NAMES).alias(name))

    live = (
        snapshot("base", bounds.base_no)
        .join(snapshot("later", bounds.next_no), _NO, "full_outer")
        .join(endings, _NO, "full_outer")
        .join(gone, _NO, "left_anti")
    )
    return live.join(attempts, _NO, "left")


def _collect(rows: DataFrame, name: str, columns: Sequence[str]) -> DataFrame:
    return rows.groupBy(_NO).agg(F.collect_list(F.struct(*columns)).alias(name))


def _decider(
    at: int, bounds: Bounds, wanted: RestoreFilter
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    schema = to_arrow_schema(_SCHEMA)

    def decide(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            found = (
                rules.restore_message(
                    row[_NO],
                    Evidence(
                        base=row["base"],
                        later=row["later"],
                        endings=row["endings"] or (),
                        attempts=row["attempts"] or (),
                    ),
                    at=at,
                    bounds=bounds,
                )
                for row in batch.to_pylist()
            )
            rows = [row for row in found if row is not None and wanted.matches(row)]
            yield pa.RecordBatch.from_pylist(rows, schema)

    return decide


def _with_contents(rows: DataFrame, tables: Tables) -> DataFrame:
    """The content from the snapshot, or from beside the ending."""

    def contents(table: str, place: dict[str, str]) -> DataFrame:
        keys = (F.col(name).alias(alias) for name, alias in place.items())
        return tables[table].select(*keys, F.struct(*CONTENT).alias(f"of_{table}"))

    of_snapshots = contents("snapshots", {_NO: _NO, "snapshot_no": "content_snapshot_no"})
    of_bodies = contents("bodies", {DT: "content_dt", "history_no": "content_history_no"})
    joined = rows.join(of_snapshots, [_NO, "content_snapshot_no"], "left").join(
        of_bodies, ["content_dt", "content_history_no"], "left"
    )
    return joined.select(*_HEAD_NAMES, *map(_content, CONTENT))


def _ends(history: DataFrame, *, after: int) -> DataFrame:
    final = history.where((F.col("finished_at") > after) & F.col("outcome").isin(*FINAL))
    return final.groupBy("id").agg(F.min("finished_at").alias(ENDED_AT))


def _content(name: str) -> Column:
    return F.coalesce(f"of_snapshots.{name}", f"of_bodies.{name}").alias(name)


def _heads(rows: DataFrame, *columns: Column | str) -> Iterator[Row]:
    has_body = F.col("body").isNotNull().alias("has_body")
    return _local(rows.select("id", "queue", "kind", has_body, *columns))


def _local(rows: DataFrame) -> Iterator[Row]:
    return (row.asDict() for row in rows.toLocalIterator(prefetchPartitions=True))
