"""The archiver's duties.  Every node tries them; the store lets one node run each per interval.

They have their own loop: writing a file takes longer than the other duties can wait.
"""

from __future__ import annotations

import logging

from penstock.ports.store import Store
from penstock.runtime.archiver.archiver import Archiver
from penstock.runtime.archiver.snapshots import Snapshots

_CHECK_MS = 1_000  # another node takes over at most this long after a missed run

_log = logging.getLogger("penstock.archive")


class ArchiveDuty:
    name = "archiver"

    def __init__(self, store: Store, archiver: Archiver, *, every_ms: int) -> None:
        self._store = store
        self._archiver = archiver
        self._every_ms = every_ms

    def tick(self, now: int) -> int:
        if not take(self._store, self.name, for_ms=self._every_ms, now=now):
            return now + min(_CHECK_MS, self._every_ms)
        archived = self._archiver.run()
        if archived.files:
            _log.info("%d rows written to the lake", sum(archived.rows.values()))
        return now + self._every_ms


class SnapshotDuty:
    name = "snapshots"

    def __init__(self, store: Store, snapshots: Snapshots, *, every_ms: int, keep: int) -> None:
        self._store = store
        self._snapshots = snapshots
        self._every_ms = every_ms
        self._keep = keep

    def tick(self, now: int) -> int:
        if not take(self._store, self.name, for_ms=self._every_ms, now=now):
            return now + min(_CHECK_MS, self._every_ms)
        taken = self._snapshots.take()
        self._snapshots.keep_only(self._keep)
        _log.info("snapshot %d: %d messages", taken.snapshot_no, taken.rows)
        return now + self._every_ms


def take(store: Store, name: str, *, for_ms: int, now: int) -> bool:
    """True if this node is to run the duty in this interval."""
    taken = store.write(lambda s: s.duties.take(name, for_ms=for_ms, now=now)).result()
    return taken is not None
