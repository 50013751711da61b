"""Read a live store in short pages, each a transaction of its own, as Arrow batches.

A partition is a range of row numbers.  Readers take no locks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema

from penstock.client.spark.options import MESSAGES, TABLES, SparkOptions
from penstock.domain.lake import layout as lake
from penstock.domain.lake.layout import Range
from penstock.domain.lake.progress import ALL_DAYS, ArchiveSource
from penstock.pipeline.schemas import schema_of
from penstock.ports.archive import LakeRow
from penstock.ports.store import Session
from penstock.settings import Settings
from penstock.settings.values import StoreSettings
from penstock.wiring.broker import Broker, open_existing

MAX_PARTITIONS = 256


class RowRange(InputPartition):
    """Rows of one day of a table, or of the whole table if it is not partitioned by day."""

    def __init__(self, day: int, rows: Range) -> None:
        self.day = day
        self.rows = rows


class Reader(DataSourceReader):
    def __init__(self, options: SparkOptions) -> None:
        self._choices = options

    def partitions(self) -> Sequence[InputPartition]:
        options = self._choices
        with closing(open_store(options)) as broker:
            if options.table == MESSAGES:
                first_and_last = broker.store.read(lambda s: s.archive.message_nos()).result()
                return [] if first_and_last is None else parts(ALL_DAYS, first_and_last, options)
            position = broker.store.read(lambda s: s.archive.position(without=())).result()
        found: list[RowRange] = []
        for (source, day), last_no in position.cut.items():
            if source is source_of(options) and last_no:
                found += parts(day, Range(1, last_no), options)
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, RowRange)
        return batches(self._choices, partition)


def source_of(options: SparkOptions) -> ArchiveSource:
    return (
        ArchiveSource(options.table)
        if options.table in list(ArchiveSource)
        else ArchiveSource.HISTORY
    )


def parts(day: int, rows: Range, options: SparkOptions) -> list[RowRange]:
    """Split into ranges of numbers; fewer wide ones rather than too many."""
    count = rows.to_no - rows.from_no + 1
    width = max(options.partition_rows, -(-count // MAX_PARTITIONS))
    return [
        RowRange(day, Range(first, min(first + width - 1, rows.to_no)))
        for first in range(rows.from_no, rows.to_no + 1, width)
    ]


def batches(options: SparkOptions, part: RowRange) -> Iterator[pa.RecordBatch]:
    table = TABLES[options.table]
    schema = to_arrow_schema(schema_of(table))
    instant = [column.name for column in table.columns].index(table.instant)
    after = part.rows.from_no - 1
    with closing(open_store(options)) as broker:
        while after < part.rows.to_no:
            left = Range(after + 1, part.rows.to_no)
            rows = _page(broker, options, part.day, left)
            if not rows:
                return
            yield _batch(table, rows, instant, schema)
            after = rows[-1][0]


def open_store(options: SparkOptions) -> Broker:
    """Open the store; raises InvalidRequest if there is none."""
    settings = Settings(store=StoreSettings(url=options.url))
    return open_existing(settings)


def _page(broker: Broker, options: SparkOptions, day: int, rows: Range) -> list[LakeRow]:
    limit, now = options.page_rows, broker.clock.now()
    source, is_bodies = source_of(options), options.table == lake.BODIES.name

    def read_live(session: Session) -> list[LakeRow]:
        return session.archive.live_page(rows, limit=limit, taken_at=now)

    def read_history(session: Session) -> list[LakeRow]:
        page = session.archive.page(source, day, rows, limit=limit, with_bodies=is_bodies)
        return page.contents if is_bodies else page.rows

    what = read_live if options.table == MESSAGES else read_history
    return broker.store.read(what).result()


def _batch(
    table: lake.LakeTable, rows: list[LakeRow], instant: int, schema: pa.Schema
) -> pa.RecordBatch:
    """Append the partition columns, in the order of the lake's own tables."""
    columns: list[Sequence[Any]] = list(zip(*rows, strict=True))
    columns.append([lake.dt_of(at) for at in columns[instant]])
    if table.of_snapshots:
        columns.append([0] * len(rows))  # rows that belong to no snapshot
    arrays = [pa.array(c, field.type) for c, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
