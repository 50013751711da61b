"""Drafts: what a sender asks for, and how it becomes a message."""

from __future__ import annotations

import hashlib
from functools import lru_cache

import msgspec
from msgspec.structs import replace

from penstock.domain.delivery.delivery import is_of_endpoint
from penstock.domain.errors import InvalidRequest, TooLarge
from penstock.domain.limits import DAY, MAX_INSTANT, NUL, Limits
from penstock.domain.message import transfer
from penstock.domain.message.lifecycle import NEXT_ORDER, Content, Message, State
from penstock.domain.queue.queue import DedupUntil, Queue

ID_DIGITS = 19  # random hexadecimal digits that an id takes
ID_CHARS = 36

# The first digit of the fourth group also encodes the UUID variant: 10xx in binary.
_VARIANT = {digit: "89ab"[int(digit, 16) & 0b11] for digit in "0123456789abcdef"}
ENVELOPE_KIND = "sns.envelope"  # the server signs the bodies of such messages
MAX_PRIORITY = 1_000_000
MAX_TIMEOUT_MS = 366 * DAY
_text = msgspec.json.Decoder(str)


def uuid7(now: int, digits: str) -> str:
    """A message id: UUID version 7, so that ids sort by the time of sending.

    An id from an instant and 19 random hexadecimal digits.
    """
    variant = _VARIANT[digits[3]]
    return f"{_stamp(now)}{digits[:3]}-{variant}{digits[4:7]}-{digits[7:]}"


@lru_cache(maxsize=16)  # the messages of a batch have the same instant
def _stamp(now: int) -> str:
    stamp = f"{now & 0xFFFF_FFFF_FFFF:012x}"
    return f"{stamp[:8]}-{stamp[8:]}-7"


class Draft(msgspec.Struct, frozen=True, gc=False):
    body: str  # JSON text
    attributes: dict[str, str] | None = None
    kind: str | None = None
    entity_id: str | None = None
    tags: tuple[str, ...] = ()
    group: str | None = None
    priority: int = 0
    due_at: int | None = None
    delay_ms: int | None = None
    dedup_key: str | None = None
    expires_at: int | None = None
    expires_in_ms: int | None = None
    max_attempts: int | None = None
    trace: str | None = None
    timeout_ms: int | None = None  # how long one attempt may take
    retries_timeouts: bool = False
    dedup_until: DedupUntil | None = None
    route: str | None = None
    dedup_window_ms: int | None = None  # in place of the queue's
    # The last one, because clients do not give it.
    size: int | None = None  # of body and attributes, if a protocol counts them in its own way


class NewMessage(msgspec.Struct, frozen=True, gc=False):
    message: Message
    content: Content
    dedup_window_ms: int | None = None  # None: the queue's


def send(
    draft: Draft,
    queue: Queue,
    *,
    now: int,
    message_id: str,
    limits: Limits,
    is_of_bus: bool = False,
) -> NewMessage:
    """The message as it will be stored; raises InvalidRequest or TooLarge.

    `is_of_bus`: the bus has made it; it may be an envelope, or a delivery to an endpoint.
    """
    if not is_of_bus:
        check_kind(draft)
        if queue.settings.labels and is_of_endpoint(queue):
            raise InvalidRequest(
                f"queue {queue.name!r} has the deliveries of an endpoint; publish to its topic"
            )
    size = _check_size(draft, queue, limits)
    if draft.attributes:
        _check_attributes(draft, draft.attributes, limits)
    _check_labels(draft, limits)
    due_at = _due_at(draft, queue, now)
    dedup_key = draft.dedup_key
    if dedup_key is None and queue.settings.dedup_by_content:
        dedup_key = content_key(draft.body)
    state = State.READY if due_at <= now else State.WAITING
    expires_at = transfer.expiry(queue, now=now, wanted=_expires_at(draft, now))
    tag1 = tag2 = None
    if draft.tags:
        tag1, tag2, *_ = (*draft.tags, None)
    # Positional, in the order of the fields: keywords would cost as much as all the checks.
    message = Message(
        message_id, queue.queue_no, due_at, now, 0, state, NEXT_ORDER, draft.priority, expires_at,
        0, draft.max_attempts, 0, 0, False, draft.group, draft.kind, draft.entity_id, tag1, tag2,
        dedup_key, size=size, body_day=now // DAY,
    )  # fmt: skip
    if draft.timeout_ms or draft.retries_timeouts or draft.route or draft.dedup_until:
        message = _as_a_job(message, draft)
    content = Content(draft.body, draft.attributes or None, draft.trace)
    if draft.dedup_window_ms is None:
        return NewMessage(message, content)
    window_ms = check_delay("dedup_window_ms", draft.dedup_window_ms)
    return NewMessage(message, content, window_ms)


def _as_a_job(message: Message, draft: Draft) -> Message:
    """Add the rarely used fields; kept apart so that ordinary sends stay fast."""
    until = None if draft.dedup_until is DedupUntil.WINDOW else draft.dedup_until
    if until is not None and message.dedup_key is None:
        raise InvalidRequest("dedup_until needs a dedup_key")
    return replace(
        message,
        timeout_ms=draft.timeout_ms,
        retries_timeouts=draft.retries_timeouts,
        route=draft.route,
        dedup_until=until,
    )


def content_key(body: str) -> str:
    """The SHA-256 of the content: of a JSON string's value, or of other JSON as written."""
    meant = _text.decode(body) if body.startswith('"') else body
    return hashlib.sha256(meant.encode()).hexdigest()


def _check_size(draft: Draft, queue: Queue, limits: Limits) -> int:
    size = draft.size
    if size is None:
        size = len(draft.body) if draft.body.isascii() else len(draft.body.encode())
    limit = min(limits.max_body_bytes, queue.settings.max_body_bytes or limits.max_body_bytes)
    if size > limit:
        raise TooLarge(f"the body has {size} bytes; {queue.name!r} takes at most {limit}")
    return size


def _check_attributes(draft: Draft, attributes: dict[str, str], limits: Limits) -> None:
    if len(attributes) > limits.max_attributes:
        raise InvalidRequest(f"a message takes at most {limits.max_attributes} attributes")
    if draft.size is None:
        size = sum(len(name.encode()) + len(text.encode()) for name, text in attributes.items())
        if size > limits.max_attribute_bytes:
            raise TooLarge(f"attributes take at most {limits.max_attribute_bytes} bytes")
    if "" in attributes:
        raise InvalidRequest("an attribute needs a name")


def _check_labels(draft: Draft, limits: Limits) -> None:
    labels: tuple[str | None, ...] = (
        draft.kind,
        draft.entity_id,
        draft.group,
        draft.dedup_key,
        draft.route,
    )
    if draft.tags:
        if len(draft.tags) > 2:
            raise InvalidRequest("a message takes at most two tags")
        labels += draft.tags
    for label in labels:
        if label is not None and not is_label(label, limits):
            raise InvalidRequest(
                "kind, entity_id, tags, group, dedup_key and route have 1 to "
                f"{limits.max_label_chars} characters, none of them NUL"
            )
    if draft.trace is not None and (len(draft.trace) > 1024 or NUL in draft.trace):
        raise InvalidRequest("trace has at most 1024 characters, none of them NUL")
    if not -MAX_PRIORITY <= draft.priority <= MAX_PRIORITY:
        raise InvalidRequest(f"priority must be from -{MAX_PRIORITY} to {MAX_PRIORITY}")
    if draft.max_attempts is not None and not 1 <= draft.max_attempts <= 1_000_000:
        raise InvalidRequest("max_attempts must be from 1 to 1000000")
    if draft.timeout_ms is not None and not 1 <= draft.timeout_ms <= MAX_TIMEOUT_MS:
        raise InvalidRequest(f"timeout_ms must be from 1 to {MAX_TIMEOUT_MS}")


def check_kind(draft: Draft) -> None:
    """Check that a sender does not pass off its own text as an envelope."""
    if draft.kind == ENVELOPE_KIND:
        raise InvalidRequest(f"kind {ENVELOPE_KIND} is reserved for the bus; use another kind")


def is_label(text: str, limits: Limits) -> bool:
    return 0 < len(text) <= limits.max_label_chars and NUL not in text


def _due_at(draft: Draft, queue: Queue, now: int) -> int:
    if draft.due_at is not None:
        if draft.delay_ms is not None:
            raise InvalidRequest("give due_at or delay_ms, not both")
        return check_instant("due_at", draft.due_at)
    delay = queue.settings.delay_ms if draft.delay_ms is None else draft.delay_ms
    return now + check_delay("delay_ms", delay)


def _expires_at(draft: Draft, now: int) -> int | None:
    if draft.expires_in_ms is not None:
        if draft.expires_at is not None:
            raise InvalidRequest("give expires_at or expires_in_ms, not both")
        return now + check_delay("expires_in_ms", draft.expires_in_ms)
    return None if draft.expires_at is None else check_instant("expires_at", draft.expires_at)


def check_instant(name: str, value: int) -> int:
    if not 0 <= value <= MAX_INSTANT:
        raise InvalidRequest(f"{name} must be an instant from 1970 to 9999")
    return value


def check_delay(name: str, value: int) -> int:
    if not 0 <= value <= 3660 * DAY:
        raise InvalidRequest(f"{name} must be from 0 to {3660 * DAY} ms")
    return value
