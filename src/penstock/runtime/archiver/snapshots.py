"""Takes snapshots of all live messages without one long read transaction.

Pages are read one after the other, each in its own transaction, while sends and completions
continue.  The result is then adjusted to one instant, `taken_at`: messages sent later are left out,
and those that ended after it but before their page was read are taken from history.  So the
snapshot holds every message with `sent_at <= taken_at < finished_at` exactly once; only messages
that were being committed at that instant may or may not be in it.  Attempts and leases are as of
the time when the message's page was read.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import TypeVar

import msgspec

from penstock.domain.errors import ShuttingDown, StoreUnavailable
from penstock.domain.lake import layout as lake
from penstock.domain.lake.layout import LakeTable, Range, Type
from penstock.domain.lake.progress import ArchiveSource, Cut, VisibleRanges
from penstock.domain.limits import DAY
from penstock.domain.message.lifecycle import State
from penstock.domain.queue.queue import Queue
from penstock.ports.archive import (
    LakeFileWriter,
    LakePage,
    LakeRow,
    LakeSnapshot,
    LakeWriter,
    Snapshot,
)
from penstock.ports.clock import Clock
from penstock.ports.store import Session, Store
from penstock.runtime.archiver.archiver import PAGE, Archiver, Pause, Progress, open_lake

T = TypeVar("T")
ROWS_PER_FILE = 1_000_000
_CHECKS = 60  # half a minute


class Snapshots:
    def __init__(
        self, store: Store, lake_: LakeWriter, clock: Clock, archiver: Archiver, *, pause: Pause
    ) -> None:
        self._store = store
        self._lake = lake_
        self._clock = clock
        self._archiver = archiver
        self._pause = pause

    def take(self, progress: Progress = lambda done, total: None) -> Snapshot:
        open_lake(self._store, self._lake)
        before = self._final_cut()
        taken_at = self._clock.now()
        numbers = self._read(lambda s: s.archive.message_nos())
        last_no = 0 if numbers is None else numbers.to_no
        snapshot_no = self._store.write(lambda s: s.archive.next_snapshot()).result()
        files = self._lake.snapshot(lake.dt_of(taken_at), snapshot_no)
        with ExitStack() as undo:
            undo.callback(files.discard)
            self._write_queues(files, taken_at)
            seen = self._write_live(files, last_no, taken_at, progress)
            ended = self._ended(before, seen, taken_at)
            file = files.file(lake.SNAPSHOTS, Range(0, last_no))
            file.add(ended)
            file.keep()
            files.keep()
            undo.pop_all()
        taken = Snapshot(snapshot_no, len(seen) + len(ended), taken_at)
        self._store.write(lambda s: s.archive.end_snapshot(taken)).result()
        return taken

    def keep_only(self, count: int) -> None:
        """Keep the latest `count` snapshots; remove older ones."""
        self._lake.remove_snapshots(self._lake.snapshots()[:-count])

    def _write_queues(self, files: LakeSnapshot, taken_at: int) -> None:
        rows: list[LakeRow] = []
        after = ""
        while page := self._read(_queues(after)):
            rows += [_queue_row(queue, taken_at) for queue in page]
            after = page[-1].name
        file = files.file(lake.QUEUES, Range(0, max((row[1] for row in rows), default=0)))
        file.add(rows)
        file.keep()

    def _write_live(
        self, files: LakeSnapshot, last_no: int, taken_at: int, progress: Progress
    ) -> array[int]:
        """Returns the numbers of the messages found, in ascending order."""
        seen: array[int] = array("q")
        with _Files(files, last_no) as out:
            for page in self._live(last_no, taken_at):
                out.add(page)
                seen.extend(row[0] for row in page)
                progress(seen[-1], last_no)
        return seen

    def _live(self, last_no: int, taken_at: int) -> Iterator[list[LakeRow]]:
        after = 0
        while after < last_no:
            page = self._read(_live_page(Range(after + 1, last_no), taken_at))
            there = [row for row in page if row[_SENT_AT] <= taken_at]
            if there:
                yield there
            if not page:
                return
            after = page[-1][0]
            if self._pause(0):
                raise ShuttingDown("the snapshot was stopped")

    def _ended(self, before: Cut, seen: Sequence[int], taken_at: int) -> list[LakeRow]:
        """Messages that were live at `taken_at` and ended before their page was read.

        Of several endings the first one after `taken_at` counts.
        """
        first: dict[int, LakeRow] = {}
        for (source, day), upto in self._final_cut().items():
            if source is not ArchiveSource.HISTORY or day < taken_at // DAY:
                continue
            for ending, body in self._endings(day, before.get((source, day), 0), upto):
                number = ending[_H["message_no"]]
                if ending[_H["sent_at"]] <= taken_at < ending[_H["finished_at"]]:
                    known = first.get(number)
                    if not _is_in(seen, number) and (known is None or known[-1] > ending[_ENDED]):
                        first[number] = (*_as_it_was(ending, body, taken_at), ending[_ENDED])
        return [row[:-1] for _, row in sorted(first.items())]

    def _endings(self, day: int, after: int, upto: int) -> Iterator[tuple[LakeRow, LakeRow]]:
        while after < upto:
            page = self._read(_ending_page(day, Range(after + 1, upto)))
            yield from zip(page.rows, page.contents, strict=True)
            if not page.rows:
                return
            after = page.rows[-1][0]

    def _final_cut(self) -> Cut:
        cut = self._archiver.final_cut(VisibleRanges(), checks=_CHECKS)
        if cut is None:
            raise StoreUnavailable(
                "no snapshot can be taken while a long-running transaction writes"
            )
        return cut

    def _read(self, what: Callable[[Session], T]) -> T:
        return self._store.read(what).result()


class _Files:
    """Files of messages, one after the other, with a limited number of rows each."""

    def __init__(self, files: LakeSnapshot, last_no: int) -> None:
        self._files = files
        self._last_no = last_no
        self._file: LakeFileWriter | None = None
        self._rows = 0

    def add(self, page: list[LakeRow]) -> None:
        if self._file is None:
            self._file = self._files.file(lake.SNAPSHOTS, Range(page[0][0], self._last_no))
        self._file.add(page)
        self._rows += len(page)
        if self._rows >= ROWS_PER_FILE:
            self._end(keep=True)

    def __enter__(self) -> _Files:
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        self._end(keep=error is None)

    def _end(self, *, keep: bool) -> None:
        file, self._file, self._rows = self._file, None, 0
        if file is not None:
            if keep:
                file.keep()
            else:
                file.discard()


def _places(table: LakeTable) -> dict[str, int]:
    return {column.name: place for place, column in enumerate(table.columns)}


_H = _places(lake.HISTORY)
_B = _places(lake.BODIES)
_ENDED = _H["finished_at"]
_SENT_AT = _places(lake.SNAPSHOTS)["sent_at"]
_CONTENT = ("body", "attributes", "trace")


def _as_it_was(ending: LakeRow, body: LakeRow, taken_at: int) -> LakeRow:
    """A message as it was at `taken_at`, reconstructed from its later ending."""
    values = {name: ending[place] for name, place in _H.items()}
    values |= {name: body[_B[name]] for name in _CONTENT}
    leased_at = values["leased_at"]
    was_leased = leased_at is not None and leased_at <= taken_at
    values |= {
        "taken_at": taken_at,
        "state": State.LEASED if was_leased else State.READY,
        "order_no": values["message_no"],
        "due_at": values["due_at"] if was_leased else values["sent_at"],
        "reason": None,
        "dedup_key": values["held_key"],
        "dedup_until": None if values["held_key"] is None else "ended",
    }
    for column in lake.SNAPSHOTS.columns:
        if column.type is Type.BOOL:
            values.setdefault(column.name, False)
    return tuple(values.get(column.name) for column in lake.SNAPSHOTS.columns)


def _queue_row(queue: Queue, taken_at: int) -> LakeRow:
    settings = msgspec.json.encode(queue.settings).decode()
    return taken_at, queue.queue_no, queue.name, settings, queue.is_paused, queue.created_at


def _is_in(seen: Sequence[int], number: int) -> bool:
    place = bisect_left(seen, number)
    return place < len(seen) and seen[place] == number


def _queues(after: str) -> Callable[[Session], list[Queue]]:
    return lambda session: session.queues.page(prefix="", after=after, limit=PAGE)


def _live_page(rows: Range, taken_at: int) -> Callable[[Session], list[LakeRow]]:
    return lambda session: session.archive.live_page(rows, limit=PAGE, taken_at=taken_at)


def _ending_page(day: int, rows: Range) -> Callable[[Session], LakePage]:
    return lambda session: session.archive.page(
        ArchiveSource.HISTORY, day, rows, limit=PAGE, with_bodies=True
    )
