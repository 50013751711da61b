"""Writes history, attempts, facts and counters to the lake, each row exactly once.

domain/lake/progress.py explains why that survives a kill at any point, and how far it is safe to
read.  Reads are short pages, each in its own transaction.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import NamedTuple, TypeVar

import msgspec

from penstock.domain.errors import LakeRefused, ShuttingDown
from penstock.domain.lake import layout as lake
from penstock.domain.lake import progress as archive
from penstock.domain.lake.layout import Range
from penstock.domain.lake.progress import ArchiveSource, Cut, Mark, Place, VisibleRanges
from penstock.domain.limits import DAY
from penstock.ports.archive import LakeFileWriter, LakePage, LakeRow, LakeWriter
from penstock.ports.clock import Clock
from penstock.ports.store import Session, Store
from penstock.runtime.minute_counters import Sampler

PAGE = 2_000  # rows of one read
CHECKS = 10  # checks per run whether earlier writers have ended: about 3 s in all
CHECK_MS = 20  # before the second check; doubled each time
_MAX_CHECK_MS = 500
_log = logging.getLogger("penstock.archive")

T = TypeVar("T")
Progress = Callable[[int, int], None]  # done, total
Pause = Callable[[int], object]  # takes milliseconds; a true result means stop


class ArchiveRun(msgspec.Struct, frozen=True):
    """What a run wrote."""

    rows: dict[str, int]
    files: int
    is_final: bool  # False: long-running transactions held back newer rows


class Archiver:
    def __init__(
        self,
        store: Store,
        lake_: LakeWriter,
        clock: Clock,
        *,
        sampler: Sampler,
        pause: Pause,
        with_bodies: bool = True,
        rows_per_file: int = archive.ROWS_PER_FILE,
    ) -> None:
        self._store = store
        self._lake = lake_
        self._clock = clock
        self._sampler = sampler
        self._pause = pause
        self._with_bodies = with_bodies
        self._most = rows_per_file
        self._visible: VisibleRanges[Cut] = VisibleRanges()

    def run(self, progress: Progress = lambda done, total: None) -> ArchiveRun:
        """Write everything that existed at the start, unless a transaction holds it back."""
        open_lake(self._store, self._lake)
        self._sampler.take(self._clock.now())
        cut = self.final_cut()
        report = _Report()
        if cut is not None:
            marks = {mark.place: mark for mark in self._read(lambda s: s.archive.marks())}
            ahead = {place: no - _done_no(marks, place) for place, no in cut.items()}
            report = _Report(sum(no for no in ahead.values() if no > 0), progress)
            for place, upto in cut.items():
                self._write_out(marks.get(place) or Mark(*place), upto, report)
            self._close_days(cut)
        self._lake.tidy(older_ms=DAY)
        return ArchiveRun(report.rows, report.files, cut is not None)

    def final_cut(
        self, visible: VisibleRanges[Cut] | None = None, *, checks: int = CHECKS
    ) -> Cut | None:
        """The row numbers of one instant below which no new row can appear; None: not yet known.

        The instant may lie before this call, unless `visible` is a new one.
        """
        visible = visible or self._visible
        for step in range(checks):
            position = self._read(lambda s: s.archive.position())
            cut = visible.observe(position.cut, position.writers)
            if cut is not None:
                return cut
            if self._pause(min(CHECK_MS << step, _MAX_CHECK_MS)):
                raise ShuttingDown("the archiver was stopped")
        _log.warning("archive is waiting for long-running transactions")
        return None

    def _write_out(self, mark: Mark, upto: int, report: _Report) -> None:
        while mark.done_no < upto or mark.planned is not None:
            planned = archive.plan(mark, upto=upto, most=self._most)
            if planned != mark and not self._write(_plan(planned)):
                mark = self._again(mark)
                continue
            written = self._write_file(planned, report)
            after = archive.finish(planned, rows=written.rows, now=self._clock.now())
            if self._write(_move(planned, after)):
                report.count(planned, written)
            mark = self._again(mark)

    def _write_file(self, mark: Mark, report: _Report) -> _Written:
        rows = mark.planned
        assert rows is not None
        files = _Files(self._lake, mark.source, mark.day, rows)
        count = 0
        with ExitStack() as undo:
            undo.callback(files.discard)
            for page in self._pages(mark.source, mark.day, rows):
                files.add(page)
                count += len(page.rows)
                report.show(page.rows[-1][0] - mark.done_no)
            undo.pop_all()
        return _Written(count, files.keep())

    def _pages(self, source: ArchiveSource, day: int, rows: Range) -> Iterator[LakePage]:
        after = rows.from_no - 1
        while after < rows.to_no:
            left = Range(after + 1, rows.to_no)
            page = self._read(_page(source, day, left, self._with_bodies))
            if not page.rows:
                return
            yield page
            after = page.rows[-1][0]
            if self._pause(0):
                raise ShuttingDown("the archiver was stopped")

    def _close_days(self, cut: Cut) -> None:
        """Close days that are over and completely written."""
        now = self._clock.now()
        for source, day in cut:
            if source.is_by_day and archive.is_over(day, today=now // DAY):
                mark = self._read(_mark(source, day))
                if mark.done_no >= cut[source, day]:
                    self._write(_close(mark, now))

    def _again(self, mark: Mark) -> Mark:
        return self._read(_mark(mark.source, mark.day))

    def _read(self, what: Callable[[Session], T]) -> T:
        return self._store.read(what).result()

    def _write(self, what: Callable[[Session], T]) -> T:
        return self._store.write(what).result()


class _Written(NamedTuple):
    rows: int
    files: int


class _Report:
    """Counts rows and files.  Progress is measured in row numbers, which may have gaps."""

    def __init__(self, total: int = 0, progress: Progress = lambda done, total: None) -> None:
        self.rows = {source.value: 0 for source in ArchiveSource}
        self.files = 0
        self._done = 0
        self._total = total
        self._progress = progress

    def show(self, under_way: int = 0) -> None:
        done = self._done + under_way
        self._progress(done, max(done, self._total))

    def count(self, mark: Mark, written: _Written) -> None:
        self.rows[mark.source.value] += written.rows
        self.files += written.files
        self._done += mark.planned_no - mark.done_no
        self.show()


class _Files:
    """The files of one plan: one per day, plus one with the bodies for history."""

    def __init__(self, lake_: LakeWriter, source: ArchiveSource, day: int, rows: Range) -> None:
        self._lake = lake_
        self._table = source.table
        self._day = day if source.is_by_day else None
        self._rows = rows
        names = [column.name for column in self._table.columns]
        self._instant = names.index(self._table.instant)
        self._open: dict[tuple[str, str], LakeFileWriter] = {}

    def add(self, page: LakePage) -> None:
        by_dt: dict[str, list[LakeRow]] = {}
        if self._day is not None:
            by_dt[lake.dt_of_day(self._day)] = page.rows
        else:
            for row in page.rows:
                by_dt.setdefault(lake.dt_of(row[self._instant]), []).append(row)
        for dt, rows in by_dt.items():
            if page.contents:
                self._file(lake.BODIES, dt).add(page.contents)
            self._file(self._table, dt).add(rows)

    def keep(self) -> int:
        """Publish the files, bodies first: a reader that sees an ending also sees its body."""
        for file in self._open.values():
            file.keep()
        return len(self._open)

    def discard(self) -> None:
        for file in self._open.values():
            file.discard()

    def _file(self, table: lake.LakeTable, dt: str) -> LakeFileWriter:
        key = table.name, dt
        if key not in self._open:
            refuse_ahead(self._lake, table, dt, self._rows)
            self._open[key] = self._lake.file(table, dt, self._rows)
        return self._open[key]


def open_lake(store: Store, lake_: LakeWriter) -> None:
    """Create the lake if there is none yet; raises LakeRefused if it belongs to another store."""
    lake_id = store.write(lambda s: s.archive.make_lake_id()).result()
    found = lake_.id()
    if found is None:
        if store.read(lambda s: s.archive.marks()).result():
            raise LakeRefused(
                f"there is no lake in {lake_.place}, but this store has written to one: set "
                "archive.folder to that lake, the same on every node; or begin a new one with "
                "penstock archive run --new-lake"
            )
        lake_.create(lake_id)
    elif found != lake_id:
        raise LakeRefused(
            f"the lake in {lake_.place} belongs to another store: set archive.folder to a "
            "different folder"
        )


def refuse_ahead(lake_: LakeWriter, table: lake.LakeTable, dt: str, rows: Range) -> None:
    """Raise LakeRefused if the lake is ahead, as a store restored from a backup reuses numbers."""
    for there in lake_.files(table, dt):
        if there.to_no >= rows.from_no and there != rows:
            raise LakeRefused(
                f"the lake in {lake_.place} has rows of {table.name} that this store has not "
                "written yet: the store was restored from an older copy; begin a new lake "
                "in another folder with penstock archive run --new-lake"
            )


def _done_no(marks: dict[Place, Mark], place: Place) -> int:
    return marks[place].done_no if place in marks else 0


def _plan(mark: Mark) -> Callable[[Session], bool]:
    return lambda session: session.archive.plan(mark)


def _move(before: Mark, after: Mark) -> Callable[[Session], bool]:
    return lambda session: session.archive.move(before, after)


def _mark(source: ArchiveSource, day: int) -> Callable[[Session], Mark]:
    return lambda session: session.archive.mark(source, day)


def _close(mark: Mark, now: int) -> Callable[[Session], None]:
    return lambda session: session.archive.close(mark, now=now)


def _page(
    source: ArchiveSource, day: int, rows: Range, bodies: bool
) -> Callable[[Session], LakePage]:
    return lambda s: s.archive.page(source, day, rows, limit=PAGE, with_bodies=bodies)
