"""Sums per minute and name, added up in any order and any number of steps."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from penstock.domain.limits import MINUTE
from penstock.pipeline.minute_sums import (
    DIMENSIONS,
    PARTIAL,
    combine_partials,
    merge_partials,
    partials,
)

ROW: dict[str, Any] = {
    "names": "\0".join(("mail", "welcome", "", "w-1")),
    "outcome": 0,
    "finished_at": 0,
    "wait_ms": 5,
    "service_ms": 100,
    "attempts": 1,
    "failures": 0,
    "crashes": 0,
    "bytes": 10,
}


def sums(*rows: dict[str, Any]) -> pa.Table:
    batch = pa.RecordBatch.from_pylist([ROW | row for row in rows])
    return pa.Table.from_batches(list(partials([batch])), PARTIAL)


def in_order(table: pa.Table) -> list[pa.RecordBatch]:
    found = table.sort_by([(name, "ascending") for name in ("dimension", "name", "minute")])
    return list(found.combine_chunks().to_batches())


def test_combined_sums_give_the_same_rollups_as_the_sums_themselves():
    first = sums({}, {"finished_at": MINUTE, "wait_ms": None, "outcome": 1})
    second = sums({"wait_ms": 5_000, "failures": 2}, {"finished_at": 2 * MINUTE})
    both = pa.concat_tables([first, second])

    combined = pa.Table.from_batches(list(combine_partials(in_order(both))))

    assert combined.schema == PARTIAL
    named = len(DIMENSIONS) - 1  # no route
    assert (both.num_rows, combined.num_rows) == (4 * named, 3 * named)
    assert list(merge_partials(in_order(combined))) == list(merge_partials(in_order(both)))
