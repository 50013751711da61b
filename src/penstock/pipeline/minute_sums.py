"""Adds up endings per minute and name.  Runs in Spark's Python workers.

    rows of lifecycle ──partials──▶ sums per name, day and minute ──▶ pipeline/merged_sums.py
    samples of queues ──samples───▶ the same, with 0 endings

Each chunk of rows yields one row per name and day, which holds its minutes as one binary value
(pipeline/packed_cells.py).  So the shuffle does not grow with the load, and Spark moves few rows.
Input and output are Arrow; numpy does the sums.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.domain.limits import MINUTE, NUL
from penstock.pipeline.histogram import Histograms, Ints, bucket_of, count
from penstock.pipeline.packed_cells import NO_BACKLOG, SUMS, cells_of, pack

DAY_MINUTES = 1_440
DIMENSIONS = ("queue", "kind", "route", "worker")
OUTCOMES = ("done", "dead", "cancelled")
ADDED = ("attempts", "failures", "crashes", "bytes")
MEASURES = ("wait", "service")
CHUNK = 500_000  # rows that are added up together
NO_NAME = ""
NO_BUCKET = -1
_MOST = 2.0**62

Flags = npt.NDArray[np.bool_]

PARTIAL = pa.schema(
    [
        pa.field("dimension", pa.string()),
        pa.field("name", pa.string()),
        pa.field("day", pa.int64()),  # since 1970
        pa.field("minutes", pa.binary()),
    ]
)


def partials(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Turn rows of lifecycle, as returned by `narrow`, into rows of PARTIAL."""
    for chunk in chunks(batches, rows=CHUNK):
        whose = pc.dictionary_encode(chunk.column("names").combine_chunks())
        splits = pc.split_pattern(whose.dictionary, NUL, max_splits=len(DIMENSIONS) - 1)
        rows = _rows(chunk)
        for place, dimension in enumerate(DIMENSIONS):
            names = pc.dictionary_encode(pc.list_element(splits, place))
            code = to_ints(names.indices)[to_ints(whose.indices)]
            is_known = code != names.dictionary.index(NO_NAME).as_py()
            if is_known.all():
                yield _partial(rows, dimension, names.dictionary, code)
            elif is_known.any():
                yield _partial(rows.only(is_known), dimension, names.dictionary, code[is_known])


def samples(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Turn samples of queues (queue, at, ready) into rows of PARTIAL, with 0 endings."""
    for chunk in chunks(batches, rows=CHUNK):
        queues = pc.dictionary_encode(chunk.column("queue").combine_chunks())
        code, minute = to_ints(queues.indices), to_ints(chunk.column("at")) // MINUTE
        cells = _cells(minute, code, of=len(queues.dictionary))
        backlog = np.full(len(cells.minute), NO_BACKLOG, dtype=np.int64)
        np.maximum.at(backlog, cells.of_row, to_ints(chunk.column("ready")))
        sums = np.zeros((len(backlog), len(SUMS)), dtype=np.int64)
        empty = Histograms.empty(of=len(backlog))
        yield _pack("queue", queues.dictionary, cells, sums, backlog, [empty] * len(MEASURES))


def chunks(
    batches: Iterable[pa.RecordBatch], *, rows: int = 1 << 62, size: int = 1 << 62
) -> Iterator[pa.Table]:
    """Batches together that have so many rows or bytes."""
    held: list[pa.RecordBatch] = []
    held_rows = held_size = 0
    for batch in batches:
        held.append(batch)
        held_rows, held_size = held_rows + batch.num_rows, held_size + batch.nbytes
        if held_rows >= rows or held_size >= size:
            yield pa.Table.from_batches(held).combine_chunks()
            held, held_rows, held_size = [], 0, 0
    if held_rows:
        yield pa.Table.from_batches(held).combine_chunks()


class _Rows(NamedTuple):
    """The columns that all dimensions share."""

    minute: Ints
    outcome: Ints
    added: dict[str, Ints]
    buckets: dict[str, Ints]  # of each measure, NO_BUCKET where it has none

    def only(self, which: Flags) -> _Rows:
        return _Rows(
            self.minute[which],
            self.outcome[which],
            {name: values[which] for name, values in self.added.items()},
            {measure: buckets[which] for measure, buckets in self.buckets.items()},
        )


def _rows(chunk: pa.Table) -> _Rows:
    def buckets(measure: str) -> Ints:
        durations = chunk.column(f"{measure}_ms")
        found = bucket_of(to_ints(durations.fill_null(0)))
        return np.where(to_flags(durations.is_valid()), found, NO_BUCKET)

    return _Rows(
        to_ints(chunk.column("finished_at")) // MINUTE,
        to_ints(chunk.column("outcome")),
        {name: to_ints(chunk.column(name)) for name in ADDED},
        {measure: buckets(measure) for measure in MEASURES},
    )


def _partial(rows: _Rows, dimension: str, names: pa.Array, code: Ints) -> pa.RecordBatch:
    cells = _cells(rows.minute, code, of=len(names))
    of = len(cells.minute)
    found = []
    for buckets in rows.buckets.values():
        is_there = buckets != NO_BUCKET
        found.append(count(cells.of_row[is_there], buckets[is_there], of=of))
    backlog = np.full(of, NO_BACKLOG, dtype=np.int64)
    return _pack(dimension, names, cells, _sums(rows, cells.of_row, of), backlog, found)


class _Cells(NamedTuple):
    """The minutes of each name that have rows, name by name."""

    code: Ints
    minute: Ints
    of_row: Ints  # which cell each row belongs to


def _cells(minute: Ints, code: Ints, *, of: int) -> _Cells:
    first = int(minute.min())
    span = int(minute.max()) - first + 1
    present, of_row = _group(code * span + minute - first, size=span * of)
    return _Cells(present // span, present % span + first, of_row)


def _group(cells: Ints, *, size: int) -> tuple[Ints, Ints]:
    """The distinct cells, and the index of each row's cell among them."""
    if size > max(8 * len(cells), 1 << 20):
        present, group = np.unique(cells, return_inverse=True)
        return present, group
    present = np.flatnonzero(np.bincount(cells, minlength=size))
    place = np.zeros(size, dtype=np.int64)
    place[present] = np.arange(len(present))
    return present, place[cells]


def _sums(rows: _Rows, group: Ints, of: int) -> Ints:
    """A column for each of SUMS."""
    found = [np.bincount(group, minlength=of)]
    found += [np.bincount(group[rows.outcome == n], minlength=of) for n in range(len(OUTCOMES))]
    # Sums of floats are exact up to 2^53, and only absurd rows make larger ones.
    for name in ADDED:
        added = np.bincount(group, weights=rows.added[name], minlength=of)
        found.append(np.minimum(added, _MOST))
    return np.column_stack([values.astype(np.int64) for values in found])


def _pack(
    dimension: str,
    names: pa.Array,
    cells: _Cells,
    sums: Ints,
    backlog: Ints,
    histograms: list[Histograms],
) -> pa.RecordBatch:
    day = cells.minute // DAY_MINUTES
    begins = np.flatnonzero(differs(cells.code) | differs(day))
    of_rows = np.diff(np.append(begins, len(day)))
    columns = [
        pa.array([dimension]).take(pa.array(np.zeros(len(begins), dtype=np.int64))),
        names.take(pa.array(cells.code[begins])),
        pa.array(day[begins]),
        pack(cells_of(of_rows, cells.minute, sums, backlog, histograms)),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=PARTIAL)


def differs(values: Ints) -> Flags:
    """True where a value differs from the previous one, and for the first."""
    return np.concatenate(([True], values[1:] != values[:-1]))


def to_ints(column: pa.Array | pa.ChunkedArray) -> Ints:
    return np.asarray(column.to_numpy(), dtype=np.int64)


def to_flags(column: pa.Array | pa.ChunkedArray) -> Flags:
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=bool)
