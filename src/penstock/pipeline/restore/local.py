"""Restores without Spark: collects the evidence of each message with pyarrow.

    1. the numbers of messages that had finally ended by the instant
    2. of all others, the numbers of those that the filter may select, condition by condition
    3. their endings and snapshot rows, then their attempts, without contents
    4. the rules, message by message
    5. the contents of the messages that are restored, and of no others

What is kept in memory is counted (`Memory`): mostly the rows of 3 and the contents of 5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import merge
from itertools import groupby
from operator import itemgetter
from typing import Any

import pyarrow as pa
from pyarrow import compute as pc

from penstock.domain.lake import layout as lake
from penstock.domain.lake.layout import LakeTable
from penstock.pipeline.files.local_lake import (
    BATCH_ROWS,
    LakeFile,
    LocalLake,
    Memory,
    NumberSet,
    schema_of,
)
from penstock.pipeline.restore.rules import (
    CONTENT,
    DECIDED,
    ENDED_AT,
    FINAL,
    HEAD,
    Condition,
    Evidence,
    RestoreFilter,
    Row,
    bounds_of,
    restore_message,
)

_NO = "message_no"
_DT = "dt"
_PAGE_ROWS = 500
_ID_BYTES = 150  # of an id in a set of Python's
_HEAD_NAMES = [column.name for column in HEAD]
_CONTENT_SCHEMA = schema_of(c for c in lake.SNAPSHOTS.columns if c.name in (_NO, *CONTENT))
_ENDING_NAMES = [column.name for column in lake.HISTORY.columns]
Mask = Callable[[pa.RecordBatch], pa.Array]
_Source = tuple[LakeTable, Sequence[LakeFile], Sequence[str]]  # and the columns to keep


class LocalRestore:
    """The messages that were live at an instant."""

    def __init__(
        self,
        lake_: LocalLake,
        *,
        at: int,
        wanted: RestoreFilter | None = None,
        memory: Memory | None = None,
    ) -> None:
        self._lake = lake_
        self._at = at
        self._wanted = wanted or RestoreFilter()
        self._memory = memory or Memory()
        self.bounds = bounds_of(taken_snapshots(lake_), at=at)
        self._ids: set[str] = set()
        self._heads = self._decide()
        self._contents = self._read_contents()
        self._ended_at = self._read_ends()

    def heads(self) -> Iterator[Row]:
        names = ("id", "queue", "kind", "state", ENDED_AT)
        for row in self.rows():
            yield {name: row[name] for name in names} | {"has_body": row["body"] is not None}

    def rows(self) -> Iterator[Row]:
        order = pc.sort_indices(
            self._heads, sort_keys=[("order_no", "ascending"), (_NO, "ascending")]
        )
        keys = self._contents.column(_NO).combine_chunks()
        for start in range(0, len(order), _PAGE_ROWS):
            page = self._heads.select(_HEAD_NAMES).take(order.slice(start, _PAGE_ROWS))
            places = pc.index_in(page.column(_NO), value_set=keys)
            contents = self._contents.select(CONTENT).take(places)
            for head, content in zip(page.to_pylist(), contents.to_pylist(), strict=True):
                yield head | content | {ENDED_AT: self._ended_at.get(head["id"])}

    def queue_settings(self) -> dict[str, str]:
        files = _of_snapshot(self._lake.files(lake.QUEUES), self.bounds.nearest_no)
        read = self._lake.batches(lake.QUEUES, ("queue", "settings"), files)
        return {row["queue"]: row["settings"] for _, batch in read for row in batch.to_pylist()}

    def _decide(self) -> pa.Table:
        """The columns of DECIDED without contents, one row per message that is restored."""
        base, later, endings = self._live()
        numbers = NumberSet(self._memory)
        for table in (base, later, endings):
            numbers.add(table.column(_NO).combine_chunks())
        attempts = self._keep(
            lake.ATTEMPTS,
            self._until(lake.ATTEMPTS),
            lambda batch: _and(self._is_past(batch, "ended_at"), numbers.contains(batch[_NO])),
        )
        schema = schema_of(DECIDED)
        found, page = [], []
        for row in self._decided(base, later, endings, attempts):
            if row["id"] in self._ids:
                continue  # restored before, and by now in the lake under another number, too
            self._memory.reserve(_ID_BYTES)
            self._ids.add(row["id"])
            page.append(row)
            if len(page) == BATCH_ROWS:
                found.append(self._hold(pa.RecordBatch.from_pylist(page, schema)))
                page = []
        found.append(self._hold(pa.RecordBatch.from_pylist(page, schema)))
        return pa.Table.from_batches(found, schema)

    def _live(self) -> tuple[pa.Table, pa.Table, pa.Table]:
        """Rows of both snapshots and of history, of messages that may have to be restored."""
        sources = [
            (lake.SNAPSHOTS, _of_snapshot(self._lake.files(lake.SNAPSHOTS), number), _HEAD_NAMES)
            for number in (self.bounds.base_no, self.bounds.next_no)
        ]
        sources.append((lake.HISTORY, self._lake.files(lake.HISTORY), _ENDING_NAMES))
        conditions = self._wanted.stored_conditions()
        gone = self._gone_numbers(conditions[:1])

        def is_live(batch: pa.RecordBatch) -> pa.Array:
            return _and(self._is_past(batch, "sent_at"), pc.invert(gone.contains(batch[_NO])))

        mask: Mask = is_live
        for condition in conditions:
            mask = _and_among(is_live, self._meeting(condition, sources, mask))
        base, later, endings = (
            self._keep(table, files, mask, columns) for table, files, columns in sources
        )
        return base, later, endings

    def _gone_numbers(self, conditions: Sequence[Condition]) -> NumberSet:
        """Messages that had finally ended by the instant.

        Some that meet the conditions in another row only may be missing: the rules drop them.
        """
        gone = NumberSet(self._memory)
        names = ["outcome", "finished_at", _NO, *(name for c in conditions for name in c[0])]
        for _, batch in self._lake.batches(lake.HISTORY, names, self._until(lake.HISTORY)):
            mask = _and(_is_final(batch), self._is_past(batch, "finished_at"))
            for condition in conditions:
                mask = _and(mask, _meets(batch, condition))
            gone.add(batch.filter(mask)[_NO])
        return gone

    def _meeting(self, condition: Condition, sources: Sequence[_Source], mask: Mask) -> NumberSet:
        """Messages with a row that meets the condition; their other rows are evidence, too."""
        found = NumberSet(self._memory)
        for table, files, _ in sources:
            names = ["sent_at", _NO, *condition[0]]
            for _, batch in self._lake.batches(table, names, files):
                found.add(batch.filter(_and(mask(batch), _meets(batch, condition)))[_NO])
        return found

    def _decided(self, *tables: pa.Table) -> Iterator[dict[str, Any]]:
        """Walks all tables in the order of message numbers, so that one message is in memory."""
        walks = [_walk(table, source) for source, table in enumerate(tables)]
        for number, found in groupby(merge(*walks, key=itemgetter(0)), key=itemgetter(0)):
            by_source: list[list[dict[str, Any]]] = [[], [], [], []]
            for _, source, row in found:
                by_source[source].append(row)
            base, later, endings, attempts = by_source
            evidence = Evidence(
                base=base[0] if base else None,
                later=later[0] if later else None,
                endings=endings,
                attempts=attempts,
            )
            restored = restore_message(number, evidence, at=self._at, bounds=self.bounds)
            if restored is not None and self._wanted.matches(restored):
                yield restored

    def _read_contents(self) -> pa.Table:
        found: list[pa.RecordBatch] = []
        for number in {self.bounds.base_no, self.bounds.next_no} - {None}:
            mask = pc.equal(self._heads["content_snapshot_no"], number)
            wanted = self._numbers(self._heads.filter(mask), _NO)
            files = _of_snapshot(self._lake.files(lake.SNAPSHOTS), number)
            found += self._contents_of(lake.SNAPSHOTS, files, wanted, _NO)
        for dt in pc.unique(self._heads["content_dt"]).drop_null().to_pylist():
            mask = pc.equal(self._heads["content_dt"], dt)
            wanted = self._numbers(self._heads.filter(mask), "content_history_no")
            files = [file for file in self._lake.files(lake.BODIES) if file.dt == dt]
            found += self._contents_of(lake.BODIES, files, wanted, "history_no")
        return pa.Table.from_batches(found, _CONTENT_SCHEMA)

    def _read_ends(self) -> dict[str, int]:
        """Final endings after the instant, by the ids of the messages that are restored."""
        ends: dict[str, int] = {}
        days = [f for f in self._lake.files(lake.HISTORY) if f.dt >= lake.dt_of(self._at)]
        for _, batch in self._lake.batches(lake.HISTORY, ("id", "outcome", "finished_at"), days):
            is_later = pc.invert(self._is_past(batch, "finished_at"))
            final = batch.filter(_and(_is_final(batch), is_later))
            for message_id, at in zip(
                final["id"].to_pylist(), final["finished_at"].to_pylist(), strict=True
            ):
                if message_id in self._ids:
                    ends[message_id] = min(at, ends.get(message_id, at))
        return ends

    def _contents_of(
        self, table: LakeTable, files: Iterable[LakeFile], wanted: NumberSet, key: str
    ) -> Iterator[pa.RecordBatch]:
        columns = dict.fromkeys((key, *_CONTENT_SCHEMA.names))
        for _, batch in self._lake.batches(table, list(columns), files):
            kept = batch.filter(wanted.contains(batch[key]))
            yield self._hold(kept.select(_CONTENT_SCHEMA.names))

    def _numbers(self, rows: pa.Table, column: str) -> NumberSet:
        numbers = NumberSet(self._memory)
        numbers.add(rows.column(column).combine_chunks())
        return numbers

    def _keep(
        self,
        table: LakeTable,
        files: Sequence[LakeFile],
        mask: Mask,
        columns: Sequence[str] | None = None,
    ) -> pa.Table:
        """The rows of the mask, in the order of message numbers, with the day of their file."""
        names = columns or [column.name for column in table.columns]
        fields = schema_of(c for c in table.columns if c.name in names).append(
            pa.field(_DT, pa.string())
        )
        found = []
        for file, batch in self._lake.batches(table, fields.names[:-1], files):
            kept = batch.filter(mask(batch))
            days = pa.array([file.dt] * kept.num_rows, pa.string())
            found.append(
                self._hold(pa.RecordBatch.from_arrays([*kept.columns, days], schema=fields))
            )
        return pa.Table.from_batches(found, fields).sort_by(_NO)

    def _hold(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        self._memory.reserve(batch.nbytes)
        return batch

    def _until(self, table: LakeTable) -> list[LakeFile]:
        """The files that have rows up to the instant."""
        last = lake.dt_of(self._at)
        return [file for file in self._lake.files(table) if file.dt <= last]

    def _is_past(self, batch: pa.RecordBatch, column: str) -> pa.Array:
        return pc.less_equal(batch[column], self._at)


class LocalEnded:
    """Messages that ended in a period, `from_at <= finished_at < to_at`, with their bodies."""

    def __init__(
        self,
        lake_: LocalLake,
        *,
        from_at: int,
        to_at: int,
        outcomes: Sequence[str],
        wanted: RestoreFilter,
        memory: Memory | None = None,
    ) -> None:
        self._lake = lake_
        self._memory = memory or Memory()
        first, last = lake.dt_of(from_at), lake.dt_of(to_at)
        self._rows: dict[tuple[str, int], dict[str, Any]] = {}  # by day and number
        files = [file for file in lake_.files(lake.HISTORY) if first <= file.dt <= last]
        for dt, files_of_day in groupby(files, key=lambda file: file.dt):
            numbers = NumberSet(self._memory)
            for kept in self._ended(files_of_day, from_at, to_at, outcomes, wanted):
                numbers.add(kept["history_no"])
                for row in kept.to_pylist():
                    content = dict.fromkeys(CONTENT) | {_DT: dt}
                    self._rows[dt, row["history_no"]] = row | content
            self._add_bodies(dt, numbers)

    def heads(self) -> Iterator[Row]:
        for row in self.rows():
            yield {**row, "state": row["outcome"], "has_body": row["body"] is not None}

    def rows(self) -> Iterator[Row]:
        yield from sorted(self._rows.values(), key=itemgetter("queue", _NO, "finished_at"))

    def _ended(
        self,
        files: Iterable[LakeFile],
        from_at: int,
        to_at: int,
        outcomes: Sequence[str],
        wanted: RestoreFilter,
    ) -> Iterator[pa.RecordBatch]:
        names = [column.name for column in lake.HISTORY.columns]
        for _, batch in self._lake.batches(lake.HISTORY, names, files):
            kept = batch.filter(_ended_within(batch, from_at, to_at, outcomes, wanted))
            self._memory.reserve(kept.nbytes)
            yield kept

    def _add_bodies(self, dt: str, numbers: NumberSet) -> None:
        files = [file for file in self._lake.files(lake.BODIES) if file.dt == dt]
        for _, batch in self._lake.batches(lake.BODIES, ("history_no", *CONTENT), files):
            kept = batch.filter(numbers.contains(batch["history_no"]))
            self._memory.reserve(kept.nbytes)
            for row in kept.to_pylist():
                self._rows[dt, row["history_no"]] |= row


def taken_snapshots(lake_: LocalLake) -> list[tuple[int, int]]:
    """The instant and number of each snapshot that has messages."""
    found: dict[int, int] = {}
    for file in lake_.files(lake.SNAPSHOTS):
        number = file.snapshot_no
        if number is None or number in found:
            continue
        for _, batch in lake_.batches(lake.SNAPSHOTS, ("taken_at",), [file]):
            if batch.num_rows:
                found[number] = batch["taken_at"][0].as_py()
                break
    return [(taken_at, number) for number, taken_at in found.items()]


def _ended_within(
    batch: pa.RecordBatch, from_at: int, to_at: int, outcomes: Sequence[str], wanted: RestoreFilter
) -> pa.Array:
    finished_at = batch["finished_at"]
    mask = _and(pc.greater_equal(finished_at, from_at), pc.less(finished_at, to_at))
    of_outcome: list[Condition] = [(("outcome",), tuple(outcomes))] if outcomes else []
    for condition in [*wanted.stored_conditions(), *of_outcome]:
        mask = _and(mask, _meets(batch, condition))
    return mask


def _meets(batch: pa.RecordBatch, condition: Condition) -> pa.Array:
    columns, values = condition
    fits = pa.array([False] * batch.num_rows, pa.bool_())
    for column in columns:
        fits = pc.or_(fits, pc.is_in(batch[column], value_set=pa.array(values, pa.string())))
    return fits


def _walk(table: pa.Table, source: int) -> Iterator[tuple[int, int, dict[str, Any]]]:
    for batch in table.to_batches(max_chunksize=1_000):
        for row in batch.to_pylist():
            yield row[_NO], source, row


def _of_snapshot(files: Iterable[LakeFile], number: int | None) -> list[LakeFile]:
    return [file for file in files if number is not None and file.snapshot_no == number]


def _is_final(batch: pa.RecordBatch) -> pa.Array:
    return pc.is_in(batch["outcome"], value_set=pa.array(FINAL))


def _and_among(mask: Mask, numbers: NumberSet) -> Mask:
    return lambda batch: _and(mask(batch), numbers.contains(batch[_NO]))


def _and(left: pa.Array, right: pa.Array) -> pa.Array:
    return pc.and_(left, right)
