"""What is known about a store and a node: findings of a check-up, damaged pages, health."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

import msgspec


class Grade(StrEnum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Finding(msgspec.Struct, frozen=True):
    name: str
    grade: Grade
    text: str


def ok(name: str, text: str) -> Finding:
    return Finding(name, Grade.OK, text)


def warn(name: str, text: str) -> Finding:
    return Finding(name, Grade.WARN, text)


def fail(name: str, text: str) -> Finding:
    return Finding(name, Grade.FAIL, text)


class DamagedPage(msgspec.Struct, frozen=True):
    page_no: int
    table: str | None = None  # None: unknown, or no longer in use
    index: str | None = None  # of the table; None: its rows
    first: int | None = None  # the numbers of the rows that may be on it
    last: int | None = None
    queues: tuple[str, ...] = ()  # as far as known
    is_correctable: bool = False  # one flipped bit: salvage loses nothing

    @property
    def text(self) -> str:
        what = (
            "an overflow page of a long row, or unused"
            if self.table is None
            else f"table {self.table}"
        )
        if self.index is not None:
            what += f", index {self.index}"
        if self.first is not None and self.last is not None:
            what += f", rows {self.first} to {self.last}"
        if self.queues:
            what += f", queues {', '.join(self.queues)}"
        if self.is_correctable:
            what += "; one flipped bit, which salvage corrects"
        return f"page {self.page_no} ({what})"


class Damage(msgspec.Struct, frozen=True):
    """Damage that a store has run into since it was opened."""

    pages: tuple[DamagedPage, ...] = ()  # empty: the search is still running

    @property
    def text(self) -> str:
        if not self.pages:
            return "a page of the store cannot be read"
        return "; ".join(page.text for page in self.pages)


class PartProgress(msgspec.Struct, frozen=True):
    """The work that a part of a node has finished so far."""

    moves: int  # pieces of work
    moved_at: int  # when it was last seen to have finished one, or to have none


class PartTrouble(msgspec.Struct, frozen=True):
    """A part of a node, a thread or a task, that does not do its work.

    A part is in trouble if it has failed and is not running, or if it is stuck: it has had work for
    too long without finishing any.
    """

    part: str
    state: Literal["failed", "stuck"]
    text: str


def observe(before: PartProgress | None, *, moves: int, has_work: bool, now: int) -> PartProgress:
    if before is None or moves != before.moves or not has_work:
        return PartProgress(moves, now)
    return before


def is_stuck(progress: PartProgress, *, stuck_ms: int, now: int) -> bool:
    return now - progress.moved_at >= stuck_ms
