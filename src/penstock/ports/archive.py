"""What the archive needs: of every store its rows by number, and somewhere to put files."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Protocol

import msgspec

from penstock.domain.lake.layout import Range, Table
from penstock.domain.lake.progress import Cut, Mark, Place, Source
from penstock.domain.message.lifecycle import Message

LakeRow = tuple[Any, ...]  # in the order of the table's columns


class Look(msgspec.Struct, frozen=True):
    """The greatest numbers of one moment, and who is writing (see domain/lake/contiguous.py)."""

    cut: Cut
    writers: frozenset[str]


class Snapshot(msgspec.Struct, frozen=True):
    snapshot_no: int
    rows: int
    taken_at: int


class Page(msgspec.Struct, frozen=True):
    rows: list[LakeRow]
    contents: list[LakeRow] = []  # of bodies, one for each row of history


class Archive(Protocol):
    """Rows by their numbers, and how far they are written out; pages are short."""

    def look(self, *, without: Collection[Place] | None = None) -> Look:
        """At all but these; None: all but those that are closed."""
        ...

    def marks(self) -> list[Mark]: ...
    def mark(self, source: Source, day: int) -> Mark: ...
    def plan(self, mark: Mark) -> bool:
        """Keep to this plan from here on; False: somebody else has planned or moved on."""
        ...

    def move(self, before: Mark, after: Mark) -> bool:
        """The file is there; False: somebody else has said so."""
        ...

    def close(self, mark: Mark, *, now: int) -> None:
        """Nothing comes any more behind what is done."""
        ...

    def page(
        self, source: Source, day: int, rows: Range, *, limit: int, with_bodies: bool = False
    ) -> Page: ...
    def live_page(self, rows: Range, *, limit: int, taken_at: int) -> list[LakeRow]:
        """Messages, as snapshots have them."""
        ...

    def message_nos(self) -> Range | None:
        """From the first to the last that is there."""
        ...

    def next_snapshot(self) -> int:
        """A number that was never given before."""
        ...

    def end_snapshot(self, snapshot: Snapshot) -> None: ...
    def snapshot(self) -> Snapshot | None:
        """The latest one."""
        ...

    def lake_id(self) -> str | None: ...
    def make_lake_id(self) -> str:
        """The id of the lake that this store writes to; the first one counts."""
        ...

    def begin_anew(self) -> None:
        """Forget the lake and how far it was."""
        ...


class Restoring(Protocol):
    """Messages that come back from the lake."""

    def known(self, ids: Sequence[str]) -> set[str]:
        """Those that are here, or have ended here as far as is remembered."""
        ...

    def set_past(self, messages: Sequence[Message]) -> None:
        """What they had behind them; they were sent in this transaction."""
        ...


class LakeFile(Protocol):
    """A file under way.  Nobody sees it before it is whole, synced, and has its name."""

    def add(self, rows: Sequence[LakeRow]) -> None: ...
    def keep(self) -> None: ...
    def discard(self) -> None: ...


class Lake(Protocol):
    @property
    def place(self) -> str: ...
    def id(self) -> str | None:
        """None: there is no lake yet."""
        ...

    def found(self, lake_id: str) -> None:
        """Make a new lake."""
        ...

    def file(self, table: Table, dt: str, rows: Range) -> LakeFile: ...
    def files(self, table: Table, dt: str) -> list[Range]: ...
    def snapshot(self, dt: str, snapshot_no: int) -> LakeSnapshot: ...
    def snapshots(self) -> list[tuple[str, int]]:
        """Those that are whole: their days and numbers, oldest first."""
        ...

    def remove_snapshots(self, gone: Iterable[tuple[str, int]]) -> None: ...
    def tidy(self, *, older_ms: int) -> int:
        """Remove what killed ones have left behind, if nobody can be at it any more."""
        ...


class LakeSnapshot(Protocol):
    """The files of a snapshot: all of them are seen at one moment, or none."""

    def file(self, table: Table, rows: Range) -> LakeFile: ...
    def keep(self) -> None: ...
    def discard(self) -> None: ...
