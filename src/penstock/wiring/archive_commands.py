"""Implements `penstock archive run`, `snapshot` and `status`, with or without a running server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from threading import Event

import msgspec

from penstock.domain.datetimes import moment_of
from penstock.domain.errors import LakeRefused
from penstock.domain.lake.progress import ArchiveSource, Mark
from penstock.ports.archive import LakeWriter, Snapshot
from penstock.ports.store import Session
from penstock.runtime.archiver.archiver import ArchiveRun
from penstock.settings import Settings
from penstock.wiring.broker import Broker, open_existing
from penstock.wiring.lake_writers import LakeWriters, open_lake_writers

Progress = Callable[[int, int], None]


class TakenSnapshot(msgspec.Struct, frozen=True):
    snapshot_no: int
    messages: int
    taken_at: datetime


class SourceStatus(msgspec.Struct, frozen=True):
    table: str
    rows: int  # in the lake
    behind: int  # approximate number that are not there yet
    written_at: datetime | None


class LakeStatus(msgspec.Struct, frozen=True):
    lake: str
    is_made: bool
    tables: list[SourceStatus]
    snapshots: int
    latest: TakenSnapshot | None


def run(settings: Settings, *, new_lake: bool, progress: Progress) -> ArchiveRun:
    """Write new rows to the lake; `new_lake`: everything the store still has, into a new lake."""
    with _open(settings) as (broker, archive):
        if new_lake:
            _refuse_old(archive.lake)
            broker.store.write(lambda s: s.archive.begin_new_lake()).result()
        return archive.archiver.run(progress)


def snapshot(settings: Settings, *, progress: Progress) -> TakenSnapshot:
    with _open(settings) as (_, archive):
        taken = archive.snapshots.take(progress)
        archive.snapshots.keep_only(settings.archive.snapshots)
        return _record_of(taken)


def status(settings: Settings) -> LakeStatus:
    with _open(settings) as (broker, archive):
        marks, cut, latest = broker.store.read(_read_status).result()
        behind = dict.fromkeys(ArchiveSource, 0)
        done = {mark.place: mark.done_no for mark in marks}
        for (source, day), number in cut.items():
            behind[source] += max(0, number - done.get((source, day), 0))
        return LakeStatus(
            lake=archive.lake.place,
            is_made=archive.lake.id() is not None,
            tables=[_source(source, marks, behind[source]) for source in ArchiveSource],
            snapshots=len(archive.lake.snapshots()),
            latest=None if latest is None else _record_of(latest),
        )


@contextmanager
def _open(settings: Settings) -> Iterator[tuple[Broker, LakeWriters]]:
    broker = open_existing(settings)
    never = Event()
    try:
        yield broker, open_lake_writers(broker, pause=lambda ms: never.wait(ms / 1000))
    finally:
        broker.close()


def _refuse_old(lake: LakeWriter) -> None:
    if lake.id() is not None:
        raise LakeRefused(
            f"a lake exists in {lake.place}: set archive.folder to another folder for a new one"
        )


def _read_status(
    session: Session,
) -> tuple[list[Mark], dict[tuple[ArchiveSource, int], int], Snapshot | None]:
    position = session.archive.position()
    return session.archive.marks(), dict(position.cut), session.archive.snapshot()


def _source(source: ArchiveSource, marks: list[Mark], behind: int) -> SourceStatus:
    own = [mark for mark in marks if mark.source is source]
    written_at = max((mark.moved_at for mark in own if mark.rows_total), default=0)
    return SourceStatus(
        table=source.value,
        rows=sum(mark.rows_total for mark in own),
        behind=behind,
        written_at=moment_of(written_at) if written_at else None,
    )


def _record_of(snapshot: Snapshot) -> TakenSnapshot:
    return TakenSnapshot(snapshot.snapshot_no, snapshot.rows, moment_of(snapshot.taken_at))
