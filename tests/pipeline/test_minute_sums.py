"""Sums per minute and name, added up in any order and any number of steps."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pyarrow as pa

from penstock.domain.limits import DAY, HOUR, MINUTE
from penstock.pipeline.merged_sums import combine_partials, merge_partials
from penstock.pipeline.minute_sums import DIMENSIONS, PARTIAL, partials, samples

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
SAMPLE: dict[str, Any] = {"queue": "mail", "at": 0, "ready": 1}
NAMED = len(DIMENSIONS) - 1  # no route


def sums(*rows: dict[str, Any]) -> pa.Table:
    batch = pa.RecordBatch.from_pylist([ROW | row for row in rows])
    return pa.Table.from_batches(list(partials([batch])), PARTIAL)


def backlogs(*rows: dict[str, Any]) -> pa.Table:
    batch = pa.RecordBatch.from_pylist([SAMPLE | row for row in rows])
    return pa.Table.from_batches(list(samples([batch])), PARTIAL)


def in_order(*tables: pa.Table) -> list[pa.RecordBatch]:
    found = pa.concat_tables(tables).sort_by([(n, "ascending") for n in ("dimension", "name")])
    return list(found.combine_chunks().to_batches())


def rolled_up(*tables: pa.Table) -> list[dict[str, Any]]:
    return pa.Table.from_batches(list(merge_partials(in_order(*tables)))).to_pylist()


def test_combined_sums_give_the_same_rollups_as_the_sums_themselves():
    first = sums({}, {"finished_at": MINUTE, "wait_ms": None, "outcome": 1})
    second = sums({"wait_ms": 5_000, "failures": 2}, {"finished_at": DAY + 2 * MINUTE})
    third = backlogs({}, {"at": HOUR, "ready": 9})

    combined = pa.Table.from_batches(list(combine_partials(in_order(first, second, third))))

    assert combined.schema == PARTIAL
    assert (first.num_rows, second.num_rows, combined.num_rows) == (NAMED, 2 * NAMED, 2 * NAMED)
    assert rolled_up(combined) == rolled_up(first, second, third)


def test_rows_without_sums_are_kept_once():
    named = {"dimension": "file", "name": "a.parquet", "day": 3, "minutes": None}
    files = pa.Table.from_pylist([named, named], PARTIAL)

    only_files = pa.Table.from_batches(list(combine_partials(in_order(files))))
    with_sums = pa.Table.from_batches(list(combine_partials(in_order(files, sums({})))))

    assert only_files.to_pylist() == [named]
    assert with_sums.filter(pa.compute.field("dimension") == "file").to_pylist() == [named]
    assert with_sums.num_rows == 1 + NAMED


def test_many_rows_in_many_parts_are_added_up_as_one_by_one():
    chance = random.Random(7)
    rows: list[dict[str, Any]] = [
        {
            "names": "\0".join((f"q-{chance.randrange(9)}", "", "", "")),
            "outcome": chance.randrange(3),
            "finished_at": chance.randrange(3 * DAY),
            "wait_ms": chance.choice([None, 0, 1, 7, 10**4, 10**10]),
            "service_ms": chance.choice([None, 3]),
            "attempts": chance.randrange(4),
            "bytes": chance.randrange(10**9),
        }
        for _ in range(3_000)
    ]
    ready: list[dict[str, Any]] = [
        {"queue": f"q-{chance.randrange(12)}", "at": chance.randrange(3 * DAY), "ready": n}
        for n in range(500)
    ]
    expected: dict[tuple[str, int, str], Counter[str]] = {}
    for grain, length in (("minute", MINUTE), ("hour", HOUR), ("day", DAY)):
        for row in rows:
            key = (grain, row["finished_at"] // length * length, row["names"].split("\0")[0])
            one = expected.setdefault(key, Counter())
            one += Counter(finished=1, attempts=row["attempts"], bytes=row["bytes"])
            one["waited"] += row["wait_ms"] is not None
            one["dead"] += row["outcome"] == 1
        for sample in ready:
            key = (grain, sample["at"] // length * length, sample["queue"])
            one = expected.setdefault(key, Counter())
            one["backlog"] = max(one["backlog"], sample["ready"])

    parts = [sums(*rows[n : n + 400]) for n in range(0, len(rows), 400)]
    found = rolled_up(*parts, backlogs(*ready[:100]), backlogs(*ready[100:]))

    assert len(found) == len(expected)
    for row in found:
        one = expected[row["grain"], row["at"], row["name"]]
        waited = sum(count for _, count in row["wait_histogram"])
        assert (
            Counter(
                finished=row["finished"],
                attempts=row["attempts"],
                bytes=row["bytes"],
                dead=row["dead"],
                waited=waited,
                backlog=row["backlog"] or 0,
            )
            == one
        ), row
