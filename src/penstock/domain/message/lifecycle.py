"""Message lifecycle: the one place that defines how a message may change.

                 claim                 complete
    READY ─────────────────▶ LEASED ───────────────▶ DONE
     ▲  ▲                     │  │ fail / expire, no attempt left; timed out; crashed too often
     │  └── release, expire, ─┘  ├──────────▶ DEAD ──── redrive ───▶ READY
     │      crash; fail with     │ cancel
     │      a delay              │
     └─ WAITING ◀────────────────┴──────────▶ CANCELLED
        (not due yet: a delay, a back-off, a snooze)

Pure functions: time, randomness and settings come in as values, the changed message comes out.
Every act on a lease is fenced by `lease_no`, which grows with each claim and is never reset.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from itertools import takewhile

import msgspec
from msgspec.structs import replace

from penstock.domain.errors import LeaseLost, WrongState
from penstock.domain.message import retry
from penstock.domain.queue.fair_share import NO_POSITION
from penstock.domain.queue.group_limit import ADMITTED, NO_GATE
from penstock.domain.queue.queue import DedupUntil, Queue, Redelivery

NEXT_ORDER = 0  # the store assigns the next number when it saves the message
NEXT_POSITION = -1  # the same for `fair_position`


class State(StrEnum):
    WAITING = "waiting"
    READY = "ready"
    LEASED = "leased"
    DONE = "done"
    DEAD = "dead"
    CANCELLED = "cancelled"


LIVE = frozenset({State.WAITING, State.READY, State.LEASED})
QUEUED = frozenset({State.WAITING, State.READY})

# Reasons set by the server; operators and handlers supply their own text.
EXHAUSTED = "attempts_exhausted"
EXPIRED = "expired"
PURGED = "purged"
TIMED_OUT = "timed_out"
QUARANTINED = "quarantined"
LEASE_EXPIRED = "the lease expired"
TOOK_TOO_LONG = "the attempt took too long"
WORKER_DIED = "the worker crashed"


class Message(msgspec.Struct, frozen=True, gc=False):
    """The part of a message that changes.  Body and attributes are stored separately (`Content`).

    Fields are in column order, so that a row becomes a message in one call.
    """

    id: str
    queue_no: int
    due_at: int  # when it may be claimed; if leased: when the lease expires
    sent_at: int
    message_no: int = 0
    state: State = State.READY
    order_no: int = NEXT_ORDER
    priority: int = 0
    expires_at: int | None = None
    attempts: int = 0  # claims that count
    max_attempts: int | None = None  # its own limit, in place of the queue's
    failures: int = 0
    lease_no: int = 0
    is_blocked: bool = False  # by an earlier message or a limit of its group
    group: str | None = None
    kind: str | None = None
    entity_id: str | None = None
    tag1: str | None = None
    tag2: str | None = None
    dedup_key: str | None = None
    first_leased_at: int | None = None
    leased_at: int | None = None
    leased_by: str | None = None
    last_error: str | None = None
    dead_from: int | None = None  # the queue it died in, if this is a dead-letter queue
    reason: str | None = None
    size: int = 0
    body_day: int = 0  # the partition that holds its content
    timeout_ms: int | None = None  # how long one attempt may take
    retries_timeouts: bool = False  # False: the message dies when an attempt times out
    started_at: int | None = None  # when the holder began to work, if later than the claim
    crashes: int = 0  # workers that crashed while they had leased it
    dedup_until: DedupUntil | None = None  # None: the time window, or it no longer holds its key
    progress: str | None = None  # JSON text that the holder reported in this attempt
    route: str | None = None  # workers check this circuit before they run the job; claims ignore it
    fair_position: int = NO_POSITION  # in a fair queue; sorts before order_no
    gate: int = NO_GATE  # where groups are limited: ADMITTED or HELD_BACK
    flow_no: int | None = None  # the flow that it is a member of


class Content(msgspec.Struct, frozen=True, gc=False):
    """What the sender sent, never changed: the body as JSON text, and attributes."""

    body: str
    attributes: dict[str, str] | None = None
    trace: str | None = None


def is_expired(message: Message, *, now: int) -> bool:
    """Whether it is queued and past its expiry; a leased message does not expire."""
    return message.state in QUEUED and message.expires_at is not None and message.expires_at <= now


def is_claimable(message: Message, *, now: int, in_a_row: bool = False) -> bool:
    """`in_a_row`: the same claim takes all earlier messages of the group as well."""
    in_front = message.state is State.READY and (in_a_row or not message.is_blocked)
    return in_front and not is_expired(message, now=now)


def claimable_in_a_row(group: Iterable[Message], *, now: int) -> list[Message]:
    """The messages that one claim may take in a row; `group`: its live messages in order."""
    return list(takewhile(lambda m: is_claimable(m, now=now, in_a_row=True), group))


def claim(
    message: Message,
    *,
    now: int,
    lease_ms: int,
    claimed_by: str | None = None,
    in_a_row: bool = False,
) -> Message:
    if not is_claimable(message, now=now, in_a_row=in_a_row):
        raise WrongState(f"message {message.id} cannot be claimed now")
    first = now if message.first_leased_at is None else message.first_leased_at
    return replace(
        message,
        state=State.LEASED,
        due_at=now + lease_ms,
        attempts=message.attempts + 1,
        lease_no=message.lease_no + 1,
        leased_at=now,
        leased_by=claimed_by,
        first_leased_at=first,
        started_at=None,
        progress=None,
    )


def complete(message: Message, *, lease_no: int, is_late_ok: bool = False) -> Message:
    """Accepted late until the message is ready again; if `is_late_ok`, until the next claim."""
    held = _require_lease(message, lease_no, is_late_ok=is_late_ok)
    return replace(held, state=State.DONE, reason=None)


def complete_by_hand(message: Message, *, reason: str | None = None) -> Message:
    """Mark it as done for an operator, unless it is leased."""
    return replace(_require_lease_or_queued(message, None), state=State.DONE, reason=reason)


def fail(
    message: Message,
    queue: Queue,
    *,
    lease_no: int,
    now: int,
    dice: float = 0.5,
    error: str | None = None,
    retry_in_ms: int | None = None,
) -> Message:
    """Back off, or die if no attempt is left."""
    failures = _require_lease(message, lease_no).failures + 1
    failed = replace(message, failures=failures, last_error=error)
    if _is_exhausted(message, queue):
        return replace(failed, state=State.DEAD, reason=EXHAUSTED)
    if retry_in_ms is None:
        retry_in_ms = retry.delay_ms(queue.settings.backoff, failures=failures, dice=dice)
    return _return(failed, queue, now=now, delay_ms=retry_in_ms)


def time_out(
    message: Message,
    queue: Queue,
    *,
    lease_no: int,
    now: int,
    dice: float = 0.5,
    error: str | None = None,
    retry_in_ms: int | None = None,
) -> Message:
    """The attempt took too long: the message dies, or fails if timeouts are retried."""
    held, error = _require_lease(message, lease_no), error or TOOK_TOO_LONG
    if not message.retries_timeouts:
        return replace(held, state=State.DEAD, reason=TIMED_OUT, last_error=error)
    return fail(
        held, queue, lease_no=lease_no, now=now, dice=dice, error=error, retry_in_ms=retry_in_ms
    )


def crash(
    message: Message, queue: Queue, *, lease_no: int, now: int, error: str | None = None
) -> Message:
    """Its worker crashed: redeliver at once, a limited number of times, as it may be the cause."""
    crashes = _require_lease(message, lease_no).crashes + 1
    crashed = replace(message, crashes=crashes, last_error=error or WORKER_DIED)
    limit = queue.settings.max_crashes
    if limit is not None and crashes >= limit:
        return replace(crashed, state=State.DEAD, reason=QUARANTINED)
    if _is_exhausted(message, queue):
        return replace(crashed, state=State.DEAD, reason=EXHAUSTED)
    return _return(crashed, queue, now=now, delay_ms=0)


def release(
    message: Message, queue: Queue, *, lease_no: int, now: int, delay_ms: int = 0
) -> Message:
    """Give it back unhandled: the attempt does not count."""
    held = _require_lease(message, lease_no)
    return _return(replace(held, attempts=held.attempts - 1), queue, now=now, delay_ms=delay_ms)


def snooze(
    message: Message,
    queue: Queue,
    *,
    lease_no: int,
    now: int,
    delay_ms: int,
    reason: str | None = None,
) -> Message:
    """The handler postpones it: like a release, but recorded differently in history.

    The reason, if any, is stored as the last error, where operators look for it.
    """
    back = release(message, queue, lease_no=lease_no, now=now, delay_ms=delay_ms)
    return back if reason is None else replace(back, last_error=reason)


def extend(
    message: Message,
    *,
    lease_no: int,
    now: int,
    lease_ms: int,
    is_late_ok: bool = False,
    progress: str | None = None,
    is_start: bool = False,
) -> Message:
    """Prolong the lease; if `is_late_ok`, a message that has returned to its queue is leased again.

    `is_start`: the time of the attempt is counted from now, for holders that claim before they can
    begin.  Only the first start counts.
    """
    mine = _require_lease(message, lease_no, is_late_ok=is_late_ok)
    starts = is_start and mine.started_at is None
    return replace(
        mine,
        # A release may have given the attempt back, but a leased message has at least one.
        attempts=max(1, mine.attempts),
        state=State.LEASED,
        due_at=now + lease_ms,
        started_at=now if starts else mine.started_at,
        progress=mine.progress if progress is None else progress,
    )


def expire_lease(message: Message, queue: Queue, *, now: int) -> Message:
    """The holder is gone: redeliver at once, or bury if that was the last attempt."""
    if message.state is not State.LEASED or message.due_at > now:
        raise WrongState(f"the lease on message {message.id} has not expired")
    if _is_exhausted(message, queue):
        return replace(message, state=State.DEAD, reason=EXHAUSTED, last_error=LEASE_EXPIRED)
    return _return(message, queue, now=now, delay_ms=0)


def fall_due(message: Message, queue: Queue, *, now: int) -> Message:
    """A delayed message joins the queue when it falls due; a redelivered one keeps its place."""
    if message.state is not State.WAITING or message.due_at > now:
        raise WrongState(f"message {message.id} is not due")
    has_place = message.first_leased_at is not None or message.gate == ADMITTED
    joins_now = not has_place and not queue.is_ordered
    order_no = NEXT_ORDER if joins_now else message.order_no
    return replace(message, state=State.READY, order_no=order_no)


def bury(
    message: Message,
    *,
    reason: str | None = None,
    lease_no: int | None = None,
    is_running_ok: bool = False,
) -> Message:
    """By its lease holder or an operator; `is_running_ok` lets an operator take a leased one."""
    free = _require_lease_or_queued(message, lease_no, is_running_ok=is_running_ok)
    return replace(free, state=State.DEAD, reason=reason)


def cancel(
    message: Message,
    *,
    reason: str | None = None,
    lease_no: int | None = None,
    is_running_ok: bool = False,
) -> Message:
    """By its lease holder or an operator; `is_running_ok` lets an operator take a leased one.

    The lease holder is fenced: its later acts raise `lease_lost`.
    """
    if message.state is State.DEAD and lease_no is None:
        return replace(message, state=State.CANCELLED)
    free = _require_lease_or_queued(message, lease_no, is_running_ok=is_running_ok)
    return replace(free, state=State.CANCELLED, reason=reason)


def expire(message: Message, *, now: int) -> Message:
    """Cancel it, because it is past its expiry."""
    if not is_expired(message, now=now):
        raise WrongState(f"message {message.id} has not expired")
    return replace(message, state=State.CANCELLED, reason=EXPIRED)


def reschedule(message: Message, *, due_at: int, now: int) -> Message:
    if message.state not in QUEUED:
        raise WrongState(f"message {message.id} is {message.state}; only queued ones can be moved")
    return replace(message, due_at=due_at, state=_state_at(due_at, now))


def _return(message: Message, queue: Queue, *, now: int, delay_ms: int) -> Message:
    to_back = queue.settings.redelivery is Redelivery.BACK
    due_at = now + delay_ms
    back = replace(message, state=_state_at(due_at, now), due_at=due_at)
    if queue.settings.rotates_groups:  # it stays the first of its group
        return replace(back, fair_position=NEXT_POSITION)
    return replace(back, order_no=NEXT_ORDER) if to_back and not queue.is_ordered else back


def _state_at(due_at: int, now: int) -> State:
    return State.READY if due_at <= now else State.WAITING


def _is_exhausted(message: Message, queue: Queue) -> bool:
    limit = queue.settings.max_attempts if message.max_attempts is None else message.max_attempts
    return limit is not None and message.attempts >= limit


def _require_lease(message: Message, lease_no: int, *, is_late_ok: bool = False) -> Message:
    """Return it or raise LeaseLost; `is_late_ok` accepts the latest lease after it has expired."""
    is_held = message.state is State.LEASED or (is_late_ok and message.state in LIVE)
    if not is_held or message.lease_no != lease_no:
        raise LeaseLost(message.id)
    return message


def _require_lease_or_queued(
    message: Message, lease_no: int | None, *, is_running_ok: bool = False
) -> Message:
    if lease_no is not None:
        return _require_lease(message, lease_no)
    if message.state not in (LIVE if is_running_ok else QUEUED):
        raise WrongState(f"message {message.id} is {message.state}")
    return message
