"""Marks advance in two steps around each file."""

from __future__ import annotations

from penstock.domain.lake.layout import Range
from penstock.domain.lake.progress import (
    ALL_DAYS,
    EVERYTHING,
    ArchiveSource,
    Mark,
    finish,
    is_over,
    plan,
    prunable_rows,
)

MARK = Mark(ArchiveSource.HISTORY, 20_000, done_no=10, planned_no=10, rows_total=9)


def test_a_plan_takes_what_is_there_but_not_more_than_a_file_holds():
    assert plan(MARK, upto=10, most=9) == MARK
    assert plan(MARK, upto=12, most=9).planned == Range(11, 12)
    assert plan(MARK, upto=99, most=5).planned == Range(11, 15)


def test_a_plan_is_kept_to_whatever_has_come_since():
    planned = plan(MARK, upto=12, most=9)
    assert plan(planned, upto=50, most=9) == planned


def test_a_file_that_is_there_moves_the_mark():
    after = finish(plan(MARK, upto=12, most=9), rows=1, now=5)
    assert (after.done_no, after.planned, after.rows_total, after.moved_at) == (12, None, 10, 5)


def test_a_day_is_over_a_day_after_its_end():
    assert [is_over(day, today=10) for day in (8, 9, 10)] == [True, False, False]


def test_only_days_that_are_closed_in_every_table_may_be_forgotten():
    def closed(source: ArchiveSource, day: int) -> Mark:
        return Mark(source, day, is_closed=True)

    marks = [
        closed(ArchiveSource.HISTORY, 1),
        closed(ArchiveSource.ATTEMPTS, 1),
        closed(ArchiveSource.HISTORY, 2),
        Mark(ArchiveSource.ATTEMPTS, 2),
        Mark(ArchiveSource.FACTS, ALL_DAYS, 7, 9),
    ]
    found = prunable_rows(marks)
    assert (found.days, found.facts_no, found.samples_no) == (frozenset({1}), 7, 0)
    assert EVERYTHING.days is None
