"""Health of a node: its parts are threads and tasks that run as long as the node does.

A part is in trouble if it has failed and is not running, or if it is stuck: it has had work for too
long without finishing any.
"""

from __future__ import annotations

from typing import Literal

import msgspec


class Pulse(msgspec.Struct, frozen=True):
    """Observations of a part."""

    moves: int  # pieces of work it has finished
    moved_at: int  # when it was last seen to have finished one, or to have none


class PartTrouble(msgspec.Struct, frozen=True):
    part: str
    state: Literal["failed", "stuck"]
    text: str


def observe(before: Pulse | None, *, moves: int, has_work: bool, now: int) -> Pulse:
    if before is None or moves != before.moves or not has_work:
        return Pulse(moves, now)
    return before


def is_stuck(pulse: Pulse, *, stuck_ms: int, now: int) -> bool:
    return now - pulse.moved_at >= stuck_ms
