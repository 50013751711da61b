"""Progress of the archiver: one mark per source and day, moved in two steps around each file.

First the store records which rows the next file will hold (`planned_no`), then the file gets its
name, then the mark moves (`done_no`).  Rows below a final number never change, and a file is named
after its rows.  So after a kill at any moment the next archiver either writes the same file again
or finds the mark moved: no row is missed, and none is in two files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from enum import StrEnum
from typing import Generic, TypeVar

import msgspec
from msgspec.structs import replace

from penstock.domain.lake import layout as lake
from penstock.domain.lake.layout import LakeTable, Range

ALL_DAYS = -1  # for sources that are one table instead of one per day
ROWS_PER_FILE = 1_000_000
FINAL_AFTER_DAYS = 1  # no node adds to a day this long after its end


class ArchiveSource(StrEnum):
    """The numbered sources, in the order in which they are archived.

    Counters come last, so that the lake has the history that belongs to every sample.
    """

    HISTORY = "history"
    ATTEMPTS = "attempts"
    FACTS = "facts"
    BACKLOG = "backlog"

    @property
    def table(self) -> LakeTable:
        return lake.TABLES[self.value]

    @property
    def is_by_day(self) -> bool:
        return self in (ArchiveSource.HISTORY, ArchiveSource.ATTEMPTS)


Place = tuple[ArchiveSource, int]  # a source and its day
Cut = Mapping[Place, int]  # the greatest numbers at one moment


class Mark(msgspec.Struct, frozen=True):
    """Fields are in column order."""

    source: ArchiveSource
    day: int
    done_no: int = 0  # everything up to here is in the lake
    planned_no: int = 0  # … and up to here it is being written
    rows_total: int = 0
    is_closed: bool = False  # no more rows will be added
    moved_at: int = 0

    @property
    def place(self) -> Place:
        return self.source, self.day

    @property
    def planned(self) -> Range | None:
        """The rows of the file that is about to be written."""
        if self.planned_no == self.done_no:
            return None
        return Range(self.done_no + 1, self.planned_no)


def plan(mark: Mark, *, upto: int, most: int) -> Mark:
    """Plan the next file; an existing plan stays, even if rows have been added since."""
    if mark.planned is not None or upto <= mark.done_no:
        return mark
    return replace(mark, planned_no=min(upto, mark.done_no + most))


def finish(mark: Mark, *, rows: int, now: int) -> Mark:
    return replace(mark, done_no=mark.planned_no, rows_total=mark.rows_total + rows, moved_at=now)


def is_over(day: int, *, today: int) -> bool:
    """Whether the day is over on every node."""
    return day + FINAL_AFTER_DAYS < today


class PrunableRows(msgspec.Struct, frozen=True):
    """Rows that the store may prune because the lake has them."""

    facts_no: int
    samples_no: int
    days: frozenset[int] | None  # None: all of them


EVERYTHING = PrunableRows(2**62, 2**62, None)


def prunable_rows(marks: Iterable[Mark]) -> PrunableRows:
    by_place = {mark.place: mark for mark in marks}
    closed = [
        {day for (s, day), m in by_place.items() if s is source and m.is_closed}
        for source in ArchiveSource
        if source.is_by_day
    ]
    facts = by_place.get((ArchiveSource.FACTS, ALL_DAYS), Mark(ArchiveSource.FACTS, ALL_DAYS))
    samples = by_place.get((ArchiveSource.BACKLOG, ALL_DAYS), Mark(ArchiveSource.BACKLOG, ALL_DAYS))
    days = frozenset.intersection(*map(frozenset, closed))
    return PrunableRows(facts.done_no, samples.done_no, days)


AnyCut = TypeVar("AnyCut")


class _Pending(msgspec.Struct, Generic[AnyCut]):
    cut: AnyCut
    writers: Set[str]  # those that have not ended


class VisibleRanges(Generic[AnyCut]):
    """Finds the number up to which all rows are visible, although numbers precede commits.

    On a store with several writers, a row may become visible after one with a greater number: its
    transaction took its number earlier and committed later.  A reader that continues from the
    greatest number seen would never see it.  So an observation has the greatest numbers, and the
    transactions that were writing right after these were read.  When all of them have ended, no row
    can appear below the numbers of that observation.  With a single writer there are no such
    transactions, and every observation is final at once.

    Waits for two observations at a time: the oldest, and then the latest.
    """

    def __init__(self) -> None:
        self._pending: list[_Pending[AnyCut]] = []

    def observe(self, cut: AnyCut, writers: Set[str]) -> AnyCut | None:
        """Return the latest cut that became final with this observation, if any."""
        final = None
        waiting = []
        for earlier in self._pending:
            earlier.writers = earlier.writers & writers
            if earlier.writers:
                waiting.append(earlier)
            else:
                final = earlier.cut
        if not writers:
            self._pending = []
            return cut
        latest = _Pending(cut, writers)
        self._pending = [*waiting[:1], latest]
        return final
