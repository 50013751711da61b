"""Transfers between queues: dead letters, redrives, moves.  Pure functions."""

from __future__ import annotations

from msgspec.structs import replace

from penstock.domain.errors import WrongState
from penstock.domain.message.lifecycle import NEXT_ORDER, QUEUED, Message, State
from penstock.domain.queue.fair_share import NO_POSITION
from penstock.domain.queue.group_limit import NO_GATE
from penstock.domain.queue.queue import Queue


def redrive(message: Message, target: Queue, *, now: int) -> Message:
    """Start over in `target`: behind all queued messages, with all attempts left."""
    if message.state is not State.DEAD and (
        message.state not in QUEUED or message.dead_from is None
    ):
        raise WrongState(f"message {message.id} is {message.state} and was not buried")
    return replace(_move(message, target, now=now), dead_from=None, reason=None)


def move(message: Message, target: Queue, *, now: int) -> Message:
    """Move to another queue: a dead message starts over, a queued one arrives as if sent there.

    A queued message keeps its expiry, unless `target` has a shorter retention.
    """
    if message.state is State.DEAD or message.dead_from is not None:
        return redrive(message, target, now=now)
    if message.state is not State.READY:
        raise WrongState(f"message {message.id} is {message.state}; only a ready one can be moved")
    expires_at = expiry(target, now=now, wanted=message.expires_at)
    return replace(_move(message, target, now=now), expires_at=expires_at)


def dead_letter(message: Message, target: Queue, *, now: int) -> Message:
    """A dead message as it is stored in the dead-letter queue."""
    moved = _move(message, target, now=now)
    return replace(moved, dead_from=message.queue_no, reason=message.reason)


def expiry(queue: Queue, *, now: int, wanted: int | None = None) -> int | None:
    """The sooner of the sender's expiry and the queue's retention."""
    if queue.settings.retention_ms is None:
        return wanted
    kept = now + queue.settings.retention_ms
    return kept if wanted is None else min(wanted, kept)


def _move(message: Message, target: Queue, *, now: int) -> Message:
    return replace(
        message,
        queue_no=target.queue_no,
        state=State.READY,
        order_no=NEXT_ORDER,
        due_at=now,
        expires_at=expiry(target, now=now),
        attempts=0,
        failures=0,
        crashes=0,
        dedup_until=None,  # its key belonged to the previous queue
        fair_position=NO_POSITION,
        gate=NO_GATE,
    )
