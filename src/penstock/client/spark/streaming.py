"""A stream of rows added to a live store; offsets are row numbers, per day for tables split by day.

An offset is published only when no row can still appear below it (domain/lake/progress.py), so a
row is in exactly one batch, also after a restart from a checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows

from penstock.client.spark.options import LATEST, SparkOptions
from penstock.client.spark.reading import RowRange, batches, open_store, parts, source_of
from penstock.domain.lake.layout import Range
from penstock.domain.lake.progress import Cut, Place, VisibleRanges, is_over
from penstock.domain.limits import DAY
from penstock.ports.store import Store
from penstock.wiring.broker import Broker

CHECKS = 20
Offset = dict[str, int]  # by day: the last number read


class StreamReader(DataSourceStreamReader):
    def __init__(self, options: SparkOptions) -> None:
        self._choices = options
        self._visible: VisibleRanges[Cut] = VisibleRanges()
        self._over: set[Place] = set()  # days that get no more rows
        self._known: Offset = {}
        self._broker: Broker | None = None

    def __getstate__(self) -> dict[str, object]:
        """Pickled for the partition readers, without open resources."""
        return {"_choices": self._choices}

    def initialOffset(self) -> dict:  # type: ignore[type-arg]
        if self._choices.starting != LATEST:
            return {}
        position = self._store().read(lambda s: s.archive.position(without=())).result()
        self._take(position.cut)
        return dict(self._known)

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._choices.max_rows)

    def latestOffset(self, start: dict, limit: ReadLimit) -> dict:  # type: ignore[type-arg]
        latest = _join(start, self._latest())
        if isinstance(limit, ReadMaxRows):
            return _cap(start, latest, limit.max_rows)
        return latest

    def reportLatestOffset(self) -> dict | None:  # type: ignore[type-arg]
        return self._known or None

    def partitions(self, start: dict, end: dict) -> Sequence[InputPartition]:  # type: ignore[type-arg]
        found: list[RowRange] = []
        for day, last_no in sorted(end.items(), key=lambda item: int(item[0])):
            first = start.get(day, 0) + 1
            if first <= last_no:
                found += parts(int(day), Range(first, last_no), self._choices)
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, RowRange)
        return batches(self._choices, partition)

    def stop(self) -> None:
        if self._broker is not None:
            self._broker.close()
            self._broker = None

    def _latest(self) -> Offset:
        """The offset up to which every row is resolved; the rest waits for the next batch."""
        over = frozenset(self._over)
        for _ in range(CHECKS):
            position = self._store().read(lambda s: s.archive.position(without=over)).result()
            cut = self._visible.observe(position.cut, position.writers)
            if cut is not None:
                self._take(cut)
                self._over |= {place for place in cut if self._is_over(place)}
                break
        return dict(self._known)

    def _take(self, cut: Cut) -> None:
        source = source_of(self._choices)
        for (of, day), last_no in cut.items():
            if of is source and last_no:
                self._known[str(day)] = last_no

    def _is_over(self, place: Place) -> bool:
        assert self._broker is not None
        today = self._broker.clock.now() // DAY
        return place[0].is_by_day and is_over(place[1], today=today)

    def _store(self) -> Store:
        if self._broker is None:
            self._broker = open_store(self._choices)
        return self._broker.store


def _join(start: Offset, latest: Offset) -> Offset:
    """Never backwards: a restarted stream may know less than its checkpoint."""
    days = start.keys() | latest.keys()
    return {day: max(start.get(day, 0), latest.get(day, 0)) for day in days}


def _cap(start: Offset, latest: Offset, most: int) -> Offset:
    """Cap the batch, oldest days first."""
    end = dict(start)
    for day in sorted(latest, key=int):
        taken = min(latest[day] - start.get(day, 0), most)
        most -= taken
        if taken > 0:
            end[day] = start.get(day, 0) + taken
    return end
