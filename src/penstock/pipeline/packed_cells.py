"""Sums per minute of one name and day as one binary value, so that Spark moves few rows.

A *cell* holds the sums of one minute.  The value of a row is a sequence of 64-bit numbers:

    how many cells it has
    FIELDS of each cell
    the buckets of each cell's histograms

A bucket is one number: its count times 256, plus 128 if it is of the second measure, plus its place
in the histogram.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from penstock.pipeline.histogram import BUCKETS, Histograms, Ints

SUMS = ("finished", "done", "dead", "cancelled", "attempts", "failures", "crashes", "bytes")
FIELDS = ("minute", *SUMS, "backlog", "buckets")  # how many buckets follow
NO_BACKLOG = -1  # there was no sample
_WORD = 8  # bytes
_MEASURES = 2


class Cells(NamedTuple):
    """The cells of many rows, row by row, and their buckets, cell by cell."""

    of_rows: Ints  # how many cells each row has
    fields: Ints  # a line for each cell
    buckets: Ints

    @property
    def row_of_each(self) -> Ints:
        return np.repeat(np.arange(len(self.of_rows)), self.of_rows)

    @property
    def minutes(self) -> Ints:
        return self.fields[:, 0]

    @property
    def sums(self) -> Ints:
        return self.fields[:, 1 : 1 + len(SUMS)]

    @property
    def backlogs(self) -> Ints:
        return self.fields[:, -2]

    @property
    def sizes(self) -> Ints:
        return self.fields[:, -1]

    def counts(self) -> Iterator[tuple[Ints, Ints, Ints]]:
        """For each measure: the cells, places and counts of its buckets."""
        cell = np.repeat(np.arange(len(self.fields)), self.sizes)
        measure = self.buckets // BUCKETS % _MEASURES
        for number in range(_MEASURES):
            of_measure = measure == number
            found = self.buckets[of_measure]
            yield cell[of_measure], found % BUCKETS, found // (_MEASURES * BUCKETS)


def cells_of(
    of_rows: Ints, minutes: Ints, sums: Ints, backlogs: Ints, histograms: Sequence[Histograms]
) -> Cells:
    """`histograms`: of each measure, one for each cell."""
    sizes = [np.diff(found.starts) for found in histograms]
    starts = _starts(np.sum(sizes, axis=0))
    buckets = np.empty(starts[-1], dtype=np.int64)
    begin = starts[:-1]
    for measure, found in enumerate(histograms):
        words = (found.counts * _MEASURES + measure) * BUCKETS + found.buckets
        buckets[_places(begin, sizes[measure])] = words
        begin = begin + sizes[measure]
    fields = np.column_stack((minutes, sums, backlogs, np.diff(starts)))
    return Cells(of_rows, fields.astype(np.int64), buckets)


def pack(cells: Cells) -> pa.Array:
    """A binary value for each row."""
    ends = _starts(cells.of_rows)
    bucket_ends = _starts(cells.sizes)
    sizes = bucket_ends[ends[1:]] - bucket_ends[ends[:-1]]
    width = cells.of_rows * len(FIELDS)
    starts = _starts(1 + width + sizes)
    words = np.empty(starts[-1], dtype=np.int64)
    words[starts[:-1]] = cells.of_rows
    words[_places(starts[:-1] + 1, width)] = cells.fields.ravel()
    words[_places(starts[:-1] + 1 + width, sizes)] = cells.buckets
    offsets = pa.py_buffer((starts * _WORD).astype(np.int32))
    return pa.Array.from_buffers(
        pa.binary(), len(cells.of_rows), [None, offsets, pa.py_buffer(words)]
    )


def unpack(values: pa.Array) -> Cells:
    """A row without a value has no cells."""
    _, offsets, content = values.buffers()
    rows = len(values)
    ends = np.frombuffer(offsets, dtype=np.int32)[values.offset : values.offset + rows + 1]
    bounds = ends.astype(np.int64) // _WORD
    words = np.frombuffer(content or b"", dtype=np.int64)
    starts, sizes = bounds[:-1], np.diff(bounds)
    of_rows = np.zeros(rows, dtype=np.int64)
    of_rows[sizes > 0] = words[starts[sizes > 0]]
    width = of_rows * len(FIELDS)
    fields = words[_places(starts + 1, width)].reshape(-1, len(FIELDS))
    rest = np.maximum(sizes - 1 - width, 0)
    return Cells(of_rows, fields, words[_places(starts + 1 + width, rest)])


def _starts(sizes: Ints) -> Ints:
    """Where each begins, and where the last one ends."""
    return np.concatenate(([0], np.cumsum(sizes)))


def _places(starts: Ints, sizes: Ints) -> Ints:
    """The places of runs: `sizes` numbers from each of `starts` on."""
    before = _starts(sizes)
    return np.repeat(starts - before[:-1], sizes) + np.arange(before[-1])
