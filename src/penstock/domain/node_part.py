"""Parts of a node, threads and tasks: their progress, and whether they are stuck."""

from __future__ import annotations

from typing import Literal

import msgspec


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
