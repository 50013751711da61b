"""What the archiver needs: rows of a store by number, and files; the pipeline's tables."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from penstock.domain.insights.answer import SourceTable
from penstock.domain.lake.layout import LakeTable, Range
from penstock.domain.lake.progress import ArchiveSource, Cut, Mark, Place
from penstock.domain.lake.tables import (
    AsOf,
    TableReadiness,
    TableRows,
    TableSummary,
    TableVersion,
)
from penstock.domain.message.lifecycle import Message
from penstock.domain.message.step import ArchivedStep

LakeRow = tuple[Any, ...]  # in the order of the table's columns


class ArchivePosition(msgspec.Struct, frozen=True):
    """The greatest numbers, and the transactions that are writing (domain/lake/progress.py)."""

    cut: Cut
    writers: frozenset[str]


class Snapshot(msgspec.Struct, frozen=True):
    snapshot_no: int
    rows: int
    taken_at: int


class LakePage(msgspec.Struct, frozen=True):
    rows: list[LakeRow]
    contents: list[LakeRow] = []  # bodies, one for each row of history


class ArchiveStore(Protocol):
    """Rows by number, and how far they are archived; pages are short."""

    def position(self, *, without: Collection[Place] | None = None) -> ArchivePosition:
        """The position of all places except these; None: of all except closed ones."""
        ...

    def marks(self) -> list[Mark]: ...
    def mark(self, source: ArchiveSource, day: int) -> Mark: ...
    def plan(self, mark: Mark) -> bool:
        """Record this plan; False: another node has planned or moved meanwhile."""
        ...

    def move(self, before: Mark, after: Mark) -> bool:
        """Record that the file exists; False: another node already has."""
        ...

    def close(self, mark: Mark, *, now: int) -> None:
        """Record that no more rows will be added."""
        ...

    def page(
        self, source: ArchiveSource, day: int, rows: Range, *, limit: int, with_bodies: bool = False
    ) -> LakePage: ...
    def live_page(self, rows: Range, *, limit: int, taken_at: int) -> list[LakeRow]:
        """Messages as rows of a snapshot."""
        ...

    def message_nos(self) -> Range | None:
        """The numbers of the first and last message."""
        ...

    def next_snapshot(self) -> int:
        """A number that was never used before."""
        ...

    def end_snapshot(self, snapshot: Snapshot) -> None: ...
    def snapshot(self) -> Snapshot | None:
        """The latest snapshot."""
        ...

    def lake_id(self) -> str | None: ...
    def make_lake_id(self) -> str:
        """The id of this store's lake; the first call decides it."""
        ...

    def begin_new_lake(self) -> None:
        """Forget the lake and the progress."""
        ...


class RestoreStore(Protocol):
    """Messages restored from the lake."""

    def known(self, ids: Sequence[str]) -> set[str]:
        """The ids that exist here, live or in the remaining history."""
        ...

    def set_attempts(self, messages: Sequence[Message]) -> None:
        """Set the attempts and errors of messages that were sent in this transaction."""
        ...

    def add_steps(self, steps: Sequence[tuple[str, ArchivedStep]]) -> None:
        """Durable steps by the ids of messages that were sent in this transaction, in order."""
        ...


class LakeFileWriter(Protocol):
    """A file being written.  It becomes visible only when it is complete, synced and named."""

    def add(self, rows: Sequence[LakeRow]) -> None: ...
    def keep(self) -> None: ...
    def discard(self) -> None: ...


class LakeWriter(Protocol):
    @property
    def place(self) -> str: ...
    def id(self) -> str | None:
        """None: the lake does not exist yet."""
        ...

    def create(self, lake_id: str) -> None:
        """Create the lake."""
        ...

    def file(self, table: LakeTable, dt: str, rows: Range) -> LakeFileWriter: ...
    def files(self, table: LakeTable, dt: str) -> list[Range]: ...
    def snapshot(self, dt: str, snapshot_no: int) -> LakeSnapshot: ...
    def snapshots(self) -> list[tuple[str, int]]:
        """The days and numbers of complete snapshots, oldest first."""
        ...

    def remove_snapshots(self, gone: Iterable[tuple[str, int]]) -> None: ...
    def tidy(self, *, older_ms: int) -> int:
        """Remove leftovers of killed processes that are too old to be in use."""
        ...


class LakeSnapshot(Protocol):
    """The files of a snapshot: all of them become visible at once, or none."""

    def file(self, table: LakeTable, rows: Range) -> LakeFileWriter: ...
    def keep(self) -> None: ...
    def discard(self) -> None: ...


class TableReader(Protocol):
    """Blocks; do not call from an event loop."""

    def has_reader(self) -> bool:
        """Whether rows can be read: pyarrow is installed."""
        ...

    def readiness(self) -> TableReadiness: ...
    def tables(self) -> list[TableSummary]:
        """By name."""
        ...

    def newest_day(self) -> str | None:
        """The newest day of any table; None: there are none."""
        ...

    def streams(
        self, tables: Collection[str], *, from_day: str, to_day: str
    ) -> Mapping[str, SourceTable | None]:
        """`from_day <= day <= to_day`.

        None: no job has written the table; without rows on these days it is there, and empty.
        """
        ...

    def rows(
        self, table: str, *, from_day: str, to_day: str, limit: int, as_of: AsOf = None
    ) -> TableRows | None:
        """`from_day <= day <= to_day`; None: there is no such table."""
        ...

    def versions(self, table: str, *, limit: int) -> list[TableVersion] | None:
        """Newest first; None: it is not a Delta table."""
        ...
