"""A store_driver with an archiver beside it, and looks into the lake."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import pyarrow.parquet as pq

from penstock.domain.lake import layout as lake
from penstock.domain.queue.queue import Queue
from penstock.files.folder import open_folder
from penstock.outbound.dice import SystemDice
from penstock.outbound.lake_files import LakeFiles
from penstock.runtime.archiver.archiver import Archiver, ArchiveRun
from penstock.runtime.archiver.snapshots import Snapshots
from penstock.runtime.minute_counters import Sampler
from tests.store.driver import StoreDriver


class ArchiverDriver:
    def __init__(
        self, store_driver: StoreDriver, folder: Any, *, is_delta: bool = False, **how: Any
    ) -> None:
        self.store_driver = store_driver
        self.folder = folder
        place = open_folder(str(folder), lambda: SystemDice().digits(8))
        self.files = LakeFiles(place, is_delta=is_delta)
        self.pauses: list[int] = []
        self.sampler = Sampler(store_driver.store, retention_days=90, is_archived=True)
        self.archiver = Archiver(
            store_driver.store,
            self.files,
            store_driver.clock,
            sampler=self.sampler,
            pause=self.pauses_none,
            **how,
        )
        self.snapshots = Snapshots(
            store_driver.store,
            self.files,
            store_driver.clock,
            self.archiver,
            pause=self.pauses_none,
        )

    def pauses_none(self, ms: int) -> None:
        self.pauses.append(ms)

    def run(self) -> ArchiveRun:
        return self.archiver.run()

    def finish(self, queue: Queue, count: int = 1, **draft: Any) -> list[str]:
        """Send, claim and complete so many; their ids."""
        ids = self.store_driver.send_many(queue, count, **draft)
        for message in self.store_driver.claim(queue, count):
            self.store_driver.complete(message)
        return ids

    def rows(self, table: lake.LakeTable) -> list[dict[str, Any]]:
        return rows_of(self.folder, table)

    def ids(self, table: lake.LakeTable) -> list[str]:
        return [row["id"] for row in self.rows(table)]


class Named(Protocol):
    @property
    def name(self) -> str: ...


def rows_of(folder: Path, table: Named) -> list[dict[str, Any]]:
    """As any reader of Parquet finds them, with the values of the partitions."""
    rows: list[dict[str, Any]] = []
    for path in sorted((folder / table.name).glob("**/*.parquet")):
        parts = path.relative_to(folder).parts
        if any(part.startswith((".", "_")) for part in parts):
            continue
        values = dict(part.split("=") for part in parts if "=" in part)
        for row in pq.ParquetFile(path).read().to_pylist():
            rows.append(values | row)
    return rows
