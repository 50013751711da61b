"""Adds up endings per minute, then minutes to hours and days.  Runs in Spark's Python workers.

    rows of lifecycle ──partials──▶ sums per minute and name
    sums ──(shuffle, sort)──merge_partials──▶ rollups

Each chunk of rows yields at most one row per minute and name, so the shuffle does not grow with the
load.  Input and output are Arrow; numpy does the sums.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.domain.limits import MINUTE, NUL
from penstock.pipeline.histogram import Histograms, Ints, bucket_of, count, merge, percentile

GRAINS = {"minute": 1, "hour": 60, "day": 1_440}  # in minutes
DIMENSIONS = ("queue", "kind", "route", "worker")
OUTCOMES = ("done", "dead", "cancelled")
ADDED = ("attempts", "failures", "crashes", "bytes")
SUMS = ("finished", *OUTCOMES, *ADDED)
MEASURES = ("wait", "service")
SHARES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
CHUNK = 500_000  # rows that are added up together
NAMED = ("dimension", "name")
NO_NAME = ""
NO_BUCKET = -1

Flags = npt.NDArray[np.bool_]

PARTIAL = pa.schema(
    [
        pa.field("dimension", pa.string()),
        pa.field("name", pa.string()),
        pa.field("minute", pa.int64()),
        *(pa.field(name, pa.int64()) for name in SUMS),
        pa.field("backlog", pa.int64()),
        *(
            field
            for measure in MEASURES
            for field in (
                pa.field(f"{measure}_buckets", pa.list_(pa.int16())),
                pa.field(f"{measure}_counts", pa.list_(pa.int64())),
            )
        ),
    ]
)


def partials(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Turn rows of lifecycle, as returned by `narrow`, into rows of PARTIAL."""
    for chunk in _chunks(batches, CHUNK):
        whose = pc.dictionary_encode(chunk.column("names").combine_chunks())
        splits = pc.split_pattern(whose.dictionary, NUL, max_splits=len(DIMENSIONS) - 1)
        rows = _rows(chunk)
        for place, dimension in enumerate(DIMENSIONS):
            names = pc.dictionary_encode(pc.list_element(splits, place))
            code = _numbers(names.indices)[_numbers(whose.indices)]
            is_known = code != names.dictionary.index(NO_NAME).as_py()
            if is_known.all():
                yield _partial(rows, dimension, names.dictionary, code)
            elif is_known.any():
                yield _partial(rows.only(is_known), dimension, names.dictionary, code[is_known])


def merge_partials(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Turn rows of PARTIAL, sorted by dimension, name and minute, into rows of the rollups."""
    for rows in _whole_names(batches):
        yield from _rolled(rows)


def combine_partials(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Add up rows of PARTIAL of the same name and minute, sorted in the same way."""
    for rows in _whole_names(batches):
        minute = _numbers(rows.column("minute"))
        is_first = _differs(_name_numbers(rows)) | _differs(minute)
        begins, group = np.flatnonzero(is_first), np.cumsum(is_first) - 1
        columns = {
            **_heads(rows, begins),
            "minute": pa.array(minute[begins]),
            **_sum_groups(rows, begins),
            "backlog": _most(rows.column("backlog"), begins),
        }
        for measure in MEASURES:
            columns |= _lists(measure, merge(_histograms(rows, measure), group, of=len(begins)))
        yield pa.RecordBatch.from_arrays([columns[n] for n in PARTIAL.names], schema=PARTIAL)


def _whole_names(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """All rows of a name together."""
    rest: pa.Table | None = None
    for chunk in _chunks(batches, CHUNK // 10):
        whole = chunk if rest is None else pa.concat_tables([rest, chunk]).combine_chunks()
        # The last name may continue in the next chunk.
        upto = _last_name_begins(whole)
        rest = whole.slice(upto)
        if upto:
            yield whole.slice(0, upto).combine_chunks()
    if rest is not None and rest.num_rows:
        yield rest.combine_chunks()


def _chunks(batches: Iterable[pa.RecordBatch], most: int) -> Iterator[pa.Table]:
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        if rows >= most:
            yield pa.Table.from_batches(held).combine_chunks()
            held, rows = [], 0
    if rows:
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
        found = bucket_of(_numbers(durations.fill_null(0)))
        return np.where(_flags(durations.is_valid()), found, NO_BUCKET)

    return _Rows(
        _numbers(chunk.column("finished_at")) // MINUTE,
        _numbers(chunk.column("outcome")),
        {name: _numbers(chunk.column(name)) for name in ADDED},
        {measure: buckets(measure) for measure in MEASURES},
    )


def _partial(rows: _Rows, dimension: str, names: pa.Array, code: Ints) -> pa.RecordBatch:
    first = int(rows.minute.min())
    cells = (rows.minute - first) * len(names) + code
    present, group = _grouped(cells, size=(int(rows.minute.max()) - first + 1) * len(names))
    of = len(present)
    columns = {
        "dimension": pa.array([dimension]).take(pa.array(np.zeros(of, dtype=np.int64))),
        "name": names.take(pa.array(present % len(names))),
        "minute": pa.array(present // len(names) + first),
        **_sums(rows, group, of),
        "backlog": pa.nulls(of, pa.int64()),
    }
    for measure, buckets in rows.buckets.items():
        is_there = buckets != NO_BUCKET
        columns |= _lists(measure, count(group[is_there], buckets[is_there], of=of))
    return pa.RecordBatch.from_arrays([columns[name] for name in PARTIAL.names], schema=PARTIAL)


def _sums(rows: _Rows, group: Ints, of: int) -> dict[str, pa.Array]:
    found = {"finished": np.bincount(group, minlength=of)}
    for number, name in enumerate(OUTCOMES):
        found[name] = np.bincount(group[rows.outcome == number], minlength=of)
    for name, weights in rows.added.items():
        found[name] = np.bincount(group, weights=weights, minlength=of).astype(np.int64)
    return {name: pa.array(values, pa.int64()) for name, values in found.items()}


def _grouped(cells: Ints, *, size: int) -> tuple[Ints, Ints]:
    """The distinct cells, and the index of each row's cell among them."""
    if size > max(8 * len(cells), 1 << 20):
        present, group = np.unique(cells, return_inverse=True)
        return present, group
    present = np.flatnonzero(np.bincount(cells, minlength=size))
    place = np.zeros(size, dtype=np.int64)
    place[present] = np.arange(len(present))
    return present, place[cells]


def _last_name_begins(rows: pa.Table) -> int:
    last = rows.num_rows - 1
    is_last = pc.and_(
        pc.equal(rows.column("dimension"), rows.column("dimension")[last]),
        pc.equal(rows.column("name"), rows.column("name")[last]),
    )
    return int(np.argmax(_flags(is_last)))


def _rolled(rows: pa.Table) -> Iterator[pa.RecordBatch]:
    """Rollups of every grain, for names whose rows are complete."""
    name_no = _name_numbers(rows)
    minute = _numbers(rows.column("minute"))
    histograms = {measure: _histograms(rows, measure) for measure in MEASURES}
    for grain, minutes in GRAINS.items():
        start = minute // minutes
        begins = np.flatnonzero(_differs(name_no) | _differs(start))
        group = np.cumsum(_differs(name_no) | _differs(start)) - 1
        yield _grain(rows, grain, start[begins] * minutes, begins, group, histograms)


def _grain(
    rows: pa.Table,
    grain: str,
    minute: Ints,
    begins: Ints,
    group: Ints,
    histograms: dict[str, Histograms],
) -> pa.RecordBatch:
    of = len(begins)
    sums = _sum_groups(rows, begins)
    per_second = _numbers(sums["finished"]) / (GRAINS[grain] * MINUTE / 1000)
    columns: dict[str, pa.Array] = {
        "grain": pa.array([grain]).take(pa.array(np.zeros(of, dtype=np.int64))),
        "at": pa.array(minute * MINUTE),
        **_heads(rows, begins),
        **sums,
        "per_second": pa.array(per_second),
        "failure_ratio": _ratio(_numbers(sums["failures"]), _numbers(sums["attempts"])),
        "backlog": _most(rows.column("backlog"), begins),
    }
    for measure, found in histograms.items():
        added = merge(found, group, of=of)
        for name, share in SHARES.items():
            value, is_missing = percentile(added, share)
            columns[f"{measure}_{name}_ms"] = pa.array(value, mask=is_missing)
        columns[f"{measure}_histogram"] = _map(added)
    return pa.RecordBatch.from_pydict(columns)


def _heads(rows: pa.Table, begins: Ints) -> dict[str, pa.Array]:
    """Dimension and name of the first row of each group."""
    return {n: rows.column(n).combine_chunks().take(pa.array(begins)) for n in NAMED}


def _sum_groups(rows: pa.Table, begins: Ints) -> dict[str, pa.Array]:
    return {n: pa.array(np.add.reduceat(_numbers(rows.column(n)), begins)) for n in SUMS}


def _ratio(part: Ints, whole: Ints) -> pa.Array:
    return pa.array(part / np.maximum(whole, 1), mask=whole == 0)


def _most(column: pa.ChunkedArray, begins: Ints) -> pa.Array:
    """The largest value of each group; null if the group has none."""
    lowest = -1
    most = np.maximum.reduceat(_numbers(column.fill_null(lowest)), begins)
    return pa.array(most, mask=most == lowest)


def _histograms(rows: pa.Table, measure: str) -> Histograms:
    buckets = rows.column(f"{measure}_buckets").combine_chunks()
    counts = rows.column(f"{measure}_counts").combine_chunks()
    sizes = _numbers(pc.fill_null(pc.list_value_length(buckets), 0))
    return Histograms(
        np.concatenate(([0], np.cumsum(sizes))),
        _numbers(buckets.flatten()),
        _numbers(counts.flatten()),
    )


def _lists(measure: str, found: Histograms) -> dict[str, pa.Array]:
    starts = pa.array(found.starts, pa.int32())
    buckets = pa.array(found.buckets.astype(np.int16))
    return {
        f"{measure}_buckets": pa.ListArray.from_arrays(starts, buckets),
        f"{measure}_counts": pa.ListArray.from_arrays(starts, pa.array(found.counts)),
    }


def _map(found: Histograms) -> pa.Array:
    starts = pa.array(found.starts, pa.int32())
    keys = pa.array(found.buckets.astype(np.int32))
    return pa.MapArray.from_arrays(starts, keys, pa.array(found.counts))


def _name_numbers(rows: pa.Table) -> Ints:
    """The same number for rows of the same dimension and name, which are adjacent."""
    pairs = [pc.dictionary_encode(rows.column(n).combine_chunks()) for n in NAMED]
    outer, inner = (_numbers(pair.indices) for pair in pairs)
    return outer * len(pairs[1].dictionary) + inner


def _differs(values: Ints) -> Flags:
    """True where a value differs from the previous one, and for the first."""
    return np.concatenate(([True], values[1:] != values[:-1]))


def _numbers(column: pa.Array | pa.ChunkedArray) -> Ints:
    return np.asarray(column.to_numpy(), dtype=np.int64)


def _flags(column: pa.Array | pa.ChunkedArray) -> Flags:
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=bool)
