"""Merges sums per minute, and adds up minutes to hours and days.  Runs in Spark's Python workers.

Reads what pipeline/minute_sums.py makes, sorted by dimension and name:

    sums ──merge_partials────▶ rollups
    sums ──combine_partials──▶ one row per name and day, for a stream to store
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.domain.limits import MINUTE
from penstock.pipeline.histogram import Histograms, Ints, count, merge, percentile
from penstock.pipeline.minute_sums import (
    DAY_MINUTES,
    MEASURES,
    PARTIAL,
    chunks,
    differs,
    to_flags,
    to_ints,
)
from penstock.pipeline.packed_cells import (
    NO_BACKLOG,
    SUMS,
    cells_of,
    pack,
    unpack,
)

GRAINS = {"minute": 1, "hour": 60, "day": DAY_MINUTES}  # in minutes: each divides the next one
SHARES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
CHUNK_BYTES = 32 * 1024 * 1024  # of sums that are merged together, beyond those of one name
NAMED = ("dimension", "name")


def merge_partials(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Turn rows of PARTIAL, sorted by dimension and name, into rows of the rollups."""
    for rows in _whole_names(batches):
        sums = _add_up(rows)
        for grain, minutes in GRAINS.items():
            sums = _coarser(sums, minutes)
            yield _rollup(rows, grain, sums)


def combine_partials(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Add up rows of PARTIAL of the same name and day, sorted in the same way."""
    for rows in _whole_names(batches):
        has_sums = rows.column("minutes").is_valid()
        others = rows.filter(pc.invert(has_sums)).select([*NAMED, "day"])
        if others.num_rows:
            yield from _once(others)
        summed = rows.filter(has_sums)
        if summed.num_rows:
            yield _pack(summed, _add_up(summed))


class _Sums(NamedTuple):
    """Sums of a name and a minute, or a longer time, in this order."""

    row: Ints  # the first row of the name
    minute: Ints  # in which it begins
    added: Ints  # a column for each of SUMS
    backlog: Ints
    histograms: list[Histograms]  # of each measure


def _add_up(rows: pa.Table) -> _Sums:
    """The sums of each name and minute."""
    cells = unpack(rows.column("minutes").combine_chunks())
    row = _first_rows(rows)[cells.row_of_each]
    first = int(cells.minutes.min())
    span = int(cells.minutes.max()) - first + 1
    key = row * span + cells.minutes - first
    order = np.argsort(key, kind="stable")
    is_first = differs(key[order])
    begins = np.flatnonzero(is_first)
    group = np.empty(len(order), dtype=np.int64)
    group[order] = np.cumsum(is_first) - 1
    merged = [
        count(group[cell], places, of=len(begins), weights=counts)
        for cell, places, counts in cells.counts()
    ]
    return _Sums(
        row[order][begins],
        cells.minutes[order][begins],
        np.add.reduceat(cells.sums[order], begins, axis=0),
        np.maximum.reduceat(cells.backlogs[order], begins),
        merged,
    )


def _coarser(sums: _Sums, minutes: int) -> _Sums:
    """The sums of periods of this length."""
    if minutes == 1:
        return sums
    start = sums.minute // minutes
    is_first = differs(sums.row) | differs(start)
    begins, group = np.flatnonzero(is_first), np.cumsum(is_first) - 1
    return _Sums(
        sums.row[begins],
        start[begins] * minutes,
        np.add.reduceat(sums.added, begins, axis=0),
        np.maximum.reduceat(sums.backlog, begins),
        [merge(each, group, of=len(begins)) for each in sums.histograms],
    )


def _rollup(rows: pa.Table, grain: str, sums: _Sums) -> pa.RecordBatch:
    of = len(sums.row)
    added = dict(zip(SUMS, sums.added.T, strict=True))
    columns: dict[str, pa.Array] = {
        "grain": pa.array([grain]).take(pa.array(np.zeros(of, dtype=np.int64))),
        "at": pa.array(sums.minute * MINUTE),
        **_heads(rows, sums.row),
        **{name: pa.array(np.ascontiguousarray(values)) for name, values in added.items()},
        "per_second": pa.array(added["finished"] / (GRAINS[grain] * MINUTE / 1000)),
        "failure_ratio": _ratio(added["failures"], added["attempts"]),
        "backlog": pa.array(sums.backlog, mask=sums.backlog == NO_BACKLOG),
    }
    for measure, found in zip(MEASURES, sums.histograms, strict=True):
        for name, share in SHARES.items():
            value, is_missing = percentile(found, share)
            columns[f"{measure}_{name}_ms"] = pa.array(value, mask=is_missing)
        columns[f"{measure}_histogram"] = _map(found)
    return pa.RecordBatch.from_pydict(columns)


def _pack(rows: pa.Table, sums: _Sums) -> pa.RecordBatch:
    """As rows of PARTIAL: one for each name and day."""
    day = sums.minute // DAY_MINUTES
    begins = np.flatnonzero(differs(sums.row) | differs(day))
    of_rows = np.diff(np.append(begins, len(day)))
    columns = {
        **_heads(rows, sums.row[begins]),
        "day": pa.array(day[begins]),
        "minutes": pack(cells_of(of_rows, sums.minute, sums.added, sums.backlog, sums.histograms)),
    }
    return pa.RecordBatch.from_pydict(columns, PARTIAL)


def _once(rows: pa.Table) -> Iterator[pa.RecordBatch]:
    """Each row once, without sums."""
    distinct = rows.group_by(rows.column_names).aggregate([])
    empty = pa.nulls(distinct.num_rows, PARTIAL.field("minutes").type)
    yield from distinct.append_column("minutes", empty).cast(PARTIAL).to_batches()


def _whole_names(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """All rows of a name together."""
    rest: pa.Table | None = None
    for chunk in chunks(batches, size=CHUNK_BYTES):
        whole = chunk if rest is None else pa.concat_tables([rest, chunk]).combine_chunks()
        # The last name may continue in the next chunk.
        upto = _last_name_begins(whole)
        rest = whole.slice(upto)
        if upto:
            yield whole.slice(0, upto).combine_chunks()
    if rest is not None and rest.num_rows:
        yield rest.combine_chunks()


def _last_name_begins(rows: pa.Table) -> int:
    last = rows.num_rows - 1
    is_last = pc.and_(*(pc.equal(rows.column(name), rows.column(name)[last]) for name in NAMED))
    return int(np.argmax(to_flags(is_last)))


def _first_rows(rows: pa.Table) -> Ints:
    """For each row, the first one with its dimension and name: these are adjacent."""
    codes = [pc.dictionary_encode(rows.column(name).combine_chunks()).indices for name in NAMED]
    is_first = np.logical_or(*(differs(to_ints(code)) for code in codes))
    begins = np.flatnonzero(is_first)
    return np.asarray(begins[np.cumsum(is_first) - 1], dtype=np.int64)


def _heads(rows: pa.Table, which: Ints) -> dict[str, pa.Array]:
    """Dimension and name of these rows."""
    return {name: rows.column(name).combine_chunks().take(pa.array(which)) for name in NAMED}


def _ratio(part: Ints, whole: Ints) -> pa.Array:
    return pa.array(part / np.maximum(whole, 1), mask=whole == 0)


def _map(found: Histograms) -> pa.Array:
    starts = pa.array(found.starts, pa.int32())
    keys = pa.array(found.buckets.astype(np.int32))
    return pa.MapArray.from_arrays(starts, keys, pa.array(found.counts))
