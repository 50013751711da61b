"""Move tasks: move messages out of a queue in the background, at a limited rate.

    RUNNING ──────▶ COMPLETED    nothing is left of what was there at the start
       │  └───────▶ FAILED       a queue is gone, or messages had no way back
       ▼
    CANCELLING ───▶ CANCELLED    what was moved stays moved

Pure functions: time comes in as a value, the changed task comes out.  A task earns credit as time
passes and spends it on each message, so the rate holds however often, and by whichever node, it is
advanced.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec
from msgspec.structs import replace

from penstock.domain.errors import MoveNotRunning
from penstock.domain.limits import SECOND, check_range
from penstock.domain.queue import rate as rates
from penstock.domain.queue.rate import Bucket, Rate

CHUNK = 250  # messages per step: short transactions do not block others
MAX_PER_SECOND = 10_000
KEPT_PER_SOURCE = 10  # ended tasks that are kept for operators

# Why a task failed.
QUEUE_NOT_FOUND = "queue_not_found"  # its source, its target, or a queue that messages died in
HOME_UNKNOWN = "home_unknown"  # no target was given, and messages did not die in any queue


class MoveState(StrEnum):
    RUNNING = "running"
    CANCELLING = "cancelling"
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    FAILED = "failed"


ACTIVE = frozenset({MoveState.RUNNING, MoveState.CANCELLING})


class MoveTask(msgspec.Struct, frozen=True):
    """Fields are in column order; the names of the queues come last."""

    task_id: str
    source_no: int
    target_no: int | None  # None: each message goes back to the queue it died in
    state: MoveState
    max_per_second: int | None
    to_move: int  # approximate number of messages at the start
    moved: int
    before_no: int  # messages from this place on arrived after the start
    credit: int
    credited_at: int  # when the credit was last computed
    started_at: int
    ended_at: int | None
    reason: str | None
    source: str
    target: str | None

    @property
    def is_active(self) -> bool:
        return self.state in ACTIVE


def check_rate(max_per_second: int | None) -> int | None:
    check_range("max_per_second", max_per_second, 1, MAX_PER_SECOND)
    return max_per_second


def allowance(task: MoveTask, *, now: int) -> int:
    """How many messages the next step may move."""
    if task.state is not MoveState.RUNNING:
        return 0
    if task.max_per_second is None:
        return CHUNK
    return min(rates.available(_bucket(task), _rate(task.max_per_second), now=now), CHUNK)


def next_at(task: MoveTask, *, now: int) -> int:
    """When the credit is worth the next step: a tenth of a second's, but at least one message."""
    rate = task.max_per_second
    if not task.is_active or rate is None:
        return now
    return rates.available_at(_bucket(task), _rate(rate), max(1, rate // 10), now=now)


def advance(task: MoveTask, *, now: int, moved: int) -> MoveTask:
    """Account for a step that moved this many messages."""
    bucket = Bucket(0, max(task.credited_at, now))
    if task.max_per_second is not None:
        bucket = rates.spend(_bucket(task), _rate(task.max_per_second), moved, now=now)
    return replace(
        task, moved=task.moved + moved, credit=bucket.credit, credited_at=bucket.credited_at
    )


def complete(task: MoveTask, *, now: int) -> MoveTask:
    return replace(_running(task), state=MoveState.COMPLETED, ended_at=now)


def fail(task: MoveTask, *, now: int, reason: str) -> MoveTask:
    return replace(_running(task), state=MoveState.FAILED, ended_at=now, reason=reason)


def cancel(task: MoveTask) -> MoveTask:
    """Stop moving; the next step ends the task."""
    return replace(_running(task), state=MoveState.CANCELLING)


def finish_cancel(task: MoveTask, *, now: int) -> MoveTask:
    if task.state is not MoveState.CANCELLING:
        raise MoveNotRunning(f"move {task.task_id} is {task.state}")
    return replace(task, state=MoveState.CANCELLED, ended_at=now)


def new_task(
    task_id: str,
    *,
    source: tuple[int, str],
    target: tuple[int, str] | None,
    max_per_second: int | None,
    to_move: int,
    before_no: int,
    now: int,
) -> MoveTask:
    """A task that may move its first message at once."""
    return MoveTask(
        task_id=task_id,
        source_no=source[0],
        target_no=None if target is None else target[0],
        state=MoveState.RUNNING,
        max_per_second=check_rate(max_per_second),
        to_move=to_move,
        moved=0,
        before_no=before_no,
        credit=0 if max_per_second is None else SECOND,  # enough for one message
        credited_at=now,
        started_at=now,
        ended_at=None,
        reason=None,
        source=source[1],
        target=None if target is None else target[1],
    )


def _rate(max_per_second: int) -> Rate:
    # No burst after a pause: at most a fifth of a second's credit is saved.
    return Rate(max_per_second, SECOND, max(1, max_per_second // 5))


def _bucket(task: MoveTask) -> Bucket:
    return Bucket(task.credit, task.credited_at)


def _running(task: MoveTask) -> MoveTask:
    if task.state is not MoveState.RUNNING:
        raise MoveNotRunning(f"move {task.task_id} is {task.state}")
    return task
