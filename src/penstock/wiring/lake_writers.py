"""A node's archiver and snapshots, with the lake that they write to."""

from __future__ import annotations

from threading import Event
from typing import TYPE_CHECKING, NamedTuple

from penstock.domain.errors import InvalidRequest, LakeRefused
from penstock.domain.lake.tables import DELTA
from penstock.domain.optional_parts import not_installed
from penstock.files.folder import open_folder
from penstock.ports.archive import LakeWriter
from penstock.runtime.archiver.archiver import Archiver, Pause
from penstock.runtime.archiver.duties import ArchiveDuty, SnapshotDuty
from penstock.runtime.archiver.snapshots import Snapshots
from penstock.runtime.loop import Duty, DutyLoop
from penstock.runtime.minute_counters import Sampler

if TYPE_CHECKING:
    from penstock.wiring.broker import Broker


class LakeWriters(NamedTuple):
    """The parts of a node that write to the lake."""

    archiver: Archiver
    snapshots: Snapshots
    lake: LakeWriter


def open_lake_writers(broker: Broker, *, pause: Pause) -> LakeWriters:
    """Writes nothing yet; raises LakeRefused if pyarrow is not installed."""
    try:
        from penstock.outbound.lake_files import LakeFiles

        folder = open_folder(broker.settings.lake_folder, lambda: broker.dice.digits(8))
    except ImportError as error:
        raise LakeRefused(not_installed("archive support", "archive")) from error
    try:
        lake = LakeFiles(folder, is_delta=broker.settings.archive.format == DELTA)
    except InvalidRequest as error:  # deltalake is not installed
        raise LakeRefused(str(error)) from error
    archiver = Archiver(
        broker.store,
        lake,
        broker.clock,
        sampler=Sampler(
            broker.store,
            retention_days=broker.settings.samples.retention_days,
            is_archived=True,
        ),
        pause=pause,
        with_bodies=broker.settings.archive.bodies,
    )
    snapshots = Snapshots(broker.store, lake, broker.clock, archiver, pause=pause)
    return LakeWriters(archiver, snapshots, lake)


def archive_loop(broker: Broker) -> DutyLoop:
    settings, store, stopped = broker.settings.archive, broker.store, Event()
    archiver, snapshots, _ = open_lake_writers(broker, pause=lambda ms: stopped.wait(ms / 1000))
    duties: list[Duty] = [ArchiveDuty(store, archiver, every_ms=settings.every_ms)]
    every_ms = settings.snapshot_every_ms
    if every_ms:
        duties.append(SnapshotDuty(store, snapshots, every_ms=every_ms, keep=settings.snapshots))
    # Never counts as stuck, because writing a day of history may take long.
    return DutyLoop(
        duties, broker.clock, name="penstock-archive", stopped=stopped, health=broker.health
    )
