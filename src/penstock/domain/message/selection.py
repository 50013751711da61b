"""Selects messages of a queue by their fields, to read them or to act on many at once."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

import msgspec

from penstock.domain.errors import InvalidRequest
from penstock.domain.limits import MAX_INSTANT
from penstock.domain.message import lifecycle, transfer
from penstock.domain.message.lifecycle import Message, State
from penstock.domain.queue.queue import Queue

BROWSABLE = (State.READY, State.WAITING, State.LEASED, State.DEAD)


def count_fitting(sizes: Iterable[int], max_bytes: int) -> int:
    """Count the messages that fit, in order; the first always does, or it would block the rest."""
    total = count = 0
    for size in sizes:
        total += size
        if count and total > max_bytes:
            break
        count += 1
    return count


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """All given fields must match; `sent_from <= sent_at < sent_before`."""

    state: State = State.READY
    kind: str | None = None
    tag: str | None = None  # matches either tag
    group: str | None = None
    entity_id: str | None = None
    sent_from: int = 0
    sent_before: int = MAX_INSTANT + 1

    @property
    def is_everything(self) -> bool:
        return self == Selection(state=self.state)


class BulkAct(StrEnum):
    COMPLETE = "complete"
    CANCEL = "cancel"
    BURY = "bury"
    REDRIVE = "redrive"
    RESCHEDULE = "reschedule"


# The states that each act applies to; other messages are refused one by one.
STATES_OF: dict[BulkAct, frozenset[State]] = {
    BulkAct.COMPLETE: lifecycle.QUEUED,
    BulkAct.CANCEL: lifecycle.QUEUED | {State.DEAD},
    BulkAct.BURY: lifecycle.QUEUED,
    BulkAct.REDRIVE: lifecycle.QUEUED | {State.DEAD},  # queued, for dead letters
    BulkAct.RESCHEDULE: lifecycle.QUEUED,
}


# With is_running_ok these also end leased messages.
ENDS_RUNNING = frozenset({BulkAct.CANCEL, BulkAct.BURY})


class BulkRequest(msgspec.Struct, frozen=True, kw_only=True):
    """An operator's act on many messages."""

    act: BulkAct
    reason: str | None = None
    due_at: int | None = None
    is_running_ok: bool = False  # cancel, bury: also leased messages


def check_request(request: BulkRequest, state: State | None) -> BulkRequest:
    """Raises InvalidRequest; `state`: of the selected messages, if known."""
    if (request.due_at is None) is (request.act is BulkAct.RESCHEDULE):
        raise InvalidRequest("due_at and delay_ms belong to reschedule, which needs one of them")
    if request.reason is not None and request.act in (BulkAct.REDRIVE, BulkAct.RESCHEDULE):
        raise InvalidRequest(f"{request.act} does not take a reason")
    if request.is_running_ok and request.act not in ENDS_RUNNING:
        raise InvalidRequest(f"{request.act} does not take is_running_ok; cancel and bury do")
    running = {State.LEASED} if request.is_running_ok else set()
    if state is not None and state not in STATES_OF[request.act] | running:
        raise InvalidRequest(f"{request.act} is not for messages that are {state}")
    return request


def apply(request: BulkRequest, message: Message, home: Queue, *, now: int) -> Message:
    """The message afterwards; raises WrongState.  A dead message returns to `home`."""
    match request.act:
        case BulkAct.COMPLETE:
            return lifecycle.complete_by_hand(message, reason=request.reason)
        case BulkAct.CANCEL:
            return lifecycle.cancel(
                message, reason=request.reason, is_running_ok=request.is_running_ok
            )
        case BulkAct.BURY:
            return lifecycle.bury(
                message, reason=request.reason, is_running_ok=request.is_running_ok
            )
        case BulkAct.REDRIVE:
            return transfer.redrive(message, home, now=now)
        case BulkAct.RESCHEDULE:
            assert request.due_at is not None
            return lifecycle.reschedule(message, due_at=request.due_at, now=now)


def place_of(message: Message) -> tuple[int, int, int, int]:
    """The cursor after this message, in the order of its state's pages."""
    match message.state:
        case State.READY:
            return (
                int(message.is_blocked),
                message.priority,
                message.fair_position,
                message.order_no,
            )
        case State.DEAD:
            return message.message_no, 0, 0, 0
        case _:
            return message.due_at, message.message_no, 0, 0
