"""Notifications: messages for a set time, and what may be changed while they wait for it.

A notification is an ordinary message.  Its additional fields are attributes, which stay with the
body: for the handler, in a dead-letter queue, in history.  The date it was recorded for is one of
them, because a message's `due_at` changes: it also holds the end of a lease or of a back-off.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from penstock.domain.duration import Duration, as_ms, duration_text
from penstock.domain.errors import InvalidRequest, WrongState
from penstock.domain.limits import DAY, MAX_INSTANT, NUL, Limits
from penstock.domain.message import lifecycle
from penstock.domain.message.draft import Draft, NewMessage, send
from penstock.domain.message.lifecycle import QUEUED, Content, Message
from penstock.domain.message.retry import MAX_DELAY_MS
from penstock.domain.queue.queue import Queue

PLANNED_AT = "notification.due_at"  # the date it was recorded for, or moved to; ms since the epoch
USER_TOKEN = "notification.user_token"  # of its recorder
FUTURE_TOKEN = "notification.future_user_token"  # for the handler's own work
OWN = frozenset({PLANNED_AT, USER_TOKEN, FUTURE_TOKEN})

MAX_TOKEN_CHARS = 256
MAX_RETRIES = 100


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """The changes to a notification; None leaves a value as it is."""

    due_at: int | None = None
    body: str | None = None  # JSON text
    tags: tuple[str, ...] | None = None
    kind: str | None = None


class RetrySchedule:
    """When a failing handler is retried: `RetrySchedule(["1h", "1d"])`.

    The n-th retry is due at the original date plus the n-th duration; after the last one the
    notification is given up.  Durations do not add up: one hour, then one day after that date.
    """

    __slots__ = ("offsets_ms",)

    def __init__(self, durations: Iterable[Duration]) -> None:
        self.offsets_ms = tuple(as_ms("a retry schedule", duration) for duration in durations)
        if len(self.offsets_ms) > MAX_RETRIES:
            raise InvalidRequest(f"a retry schedule has at most {MAX_RETRIES} dates")
        if any(offset > MAX_DELAY_MS for offset in self.offsets_ms):
            raise InvalidRequest(
                f"the dates of a retry schedule are at most {MAX_DELAY_MS} ms away"
            )

    def __repr__(self) -> str:
        return f"RetrySchedule({[duration_text(offset) for offset in self.offsets_ms]})"

    def retry_in_ms(self, *, planned_at: int, failures: int, now: int) -> int | None:
        """How long until the retry after this many failures; None: no retry is left."""
        if failures > len(self.offsets_ms):
            return None
        return max(0, planned_at + self.offsets_ms[failures - 1] - now)


def as_notification(
    draft: Draft, *, due_at: int, user_token: str | None, future_token: str
) -> Draft:
    """Add the attributes of a notification to a draft; raises InvalidRequest."""
    given = draft.attributes or {}
    if not OWN.isdisjoint(given):
        raise InvalidRequest("attributes that begin with 'notification.' are reserved")
    own = {PLANNED_AT: str(due_at), FUTURE_TOKEN: future_token}
    if user_token is not None:
        if not 0 < len(user_token) <= MAX_TOKEN_CHARS or NUL in user_token:
            raise InvalidRequest(f"user_token has 1 to {MAX_TOKEN_CHARS} characters, none NUL")
        own[USER_TOKEN] = user_token
    return replace(draft, attributes={**given, **own}, due_at=due_at, delay_ms=None)


def planned_at(attributes: dict[str, str] | None) -> int | None:
    """The date it was recorded for; None if it is not a notification."""
    text = (attributes or {}).get(PLANNED_AT, "")
    # Any sender can set attributes, so the number may not be a valid instant.
    is_number = len(text) <= len(str(MAX_INSTANT)) and text.isascii() and text.isdigit()
    return int(text) if is_number and int(text) <= MAX_INSTANT else None


def change(
    message: Message, content: Content, queue: Queue, wanted: Change, *, now: int, limits: Limits
) -> NewMessage:
    """Change date, body or tags of a queued message; raises WrongState once it is leased."""
    if message.state not in QUEUED:
        text = f"message {message.id} is {message.state}; only a queued message can be changed"
        raise WrongState(text)
    tags = tuple(tag for tag in (message.tag1, message.tag2) if tag is not None)
    draft = Draft(
        body=content.body if wanted.body is None else wanted.body,
        attributes=_move_planned_at(content.attributes, wanted.due_at),
        tags=tags if wanted.tags is None else wanted.tags,
        kind=message.kind if wanted.kind is None else wanted.kind,
        trace=content.trace,
        delay_ms=0,
    )
    # Checked like a new message, so that a change cannot bypass the current limits.
    checked = send(draft, queue, now=now, message_id=message.id, limits=limits)
    new = checked.message
    after = replace(
        message, kind=new.kind, tag1=new.tag1, tag2=new.tag2, size=new.size, body_day=now // DAY
    )
    if wanted.due_at is not None:
        after = lifecycle.reschedule(after, due_at=wanted.due_at, now=now)
    return NewMessage(after, checked.content)


def _move_planned_at(
    attributes: dict[str, str] | None, due_at: int | None
) -> dict[str, str] | None:
    if due_at is None or planned_at(attributes) is None:
        return attributes
    return {**(attributes or {}), PLANNED_AT: str(due_at)}
