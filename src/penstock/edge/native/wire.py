"""The JSON of the native API as it answers."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from penstock.domain.message.deadline import deadline
from penstock.domain.message.lifecycle import Content, Message, State
from penstock.domain.queue.queue import DedupUntil
from penstock.edge.instants import to_text
from penstock.ports.store import Acted, Sent


def _one_of(*names: str) -> Meta:
    """For the document: what stands in a field whose type says less."""
    refs = [{"$ref": f"#/components/schemas/{name}"} for name in names]
    return Meta(extra_json_schema={"oneOf": refs})


class SentOut(msgspec.Struct):
    id: str
    is_duplicate: bool = False


class SendResultsOut(msgspec.Struct):
    results: list[Annotated[Any, _one_of("SentOut", "ErrorAnswer")]]


class ActResultsOut(msgspec.Struct):
    results: list[Annotated[Any, _one_of("ActedOut", "ErrorAnswer")]]


class ActedOut(msgspec.Struct):
    id: str
    state: State
    due_at: str


class BuriedOut(msgspec.Struct):
    id: str
    state: State


class MessageOut(msgspec.Struct, omit_defaults=True):
    """A message as it is shown; what it does not have is left out."""

    id: str
    queue: str
    state: State
    attempts: int
    sent_at: str
    body: msgspec.Raw | None = None
    receipt: str | None = None
    lease_no: int = 0
    leased_until: str | None = None
    due_at: str | None = None
    attributes: dict[str, str] | None = None
    kind: str | None = None
    entity_id: str | None = None
    tags: list[str] = []
    group: str | None = None
    is_blocked: bool = False
    priority: int = 0
    dedup_key: str | None = None
    expires_at: str | None = None
    max_attempts: int | None = None
    failures: int = 0
    trace: str | None = None
    first_leased_at: str | None = None
    leased_at: str | None = None
    leased_by: str | None = None
    last_error: str | None = None
    reason: str | None = None
    dead_from: str | None = None
    finished_at: str | None = None
    size: int = 0
    timeout_ms: int | None = None
    retries_timeouts: bool = False
    started_at: str | None = None
    deadline_at: str | None = None
    crashes: int = 0
    dedup_until: DedupUntil | None = None
    progress: msgspec.Raw | None = None
    route: str | None = None


class ClaimedOut(msgspec.Struct, omit_defaults=True):
    messages: list[MessageOut]
    completed: list[Annotated[Any, _one_of("ActedOut", "ErrorAnswer")]] = []


class PageOut(msgspec.Struct):
    messages: list[MessageOut]
    next: str | None


def message_out(queue: str, message: Message, content: Content | None) -> MessageOut:
    m = message
    out = MessageOut(m.id, queue, m.state, m.attempts, to_text(m.sent_at))
    if content is not None:
        out.body = msgspec.Raw(content.body.encode())
        out.attributes = content.attributes
        out.trace = content.trace
    out.lease_no, out.failures, out.priority, out.size = m.lease_no, m.failures, m.priority, m.size
    out.kind, out.entity_id, out.group = m.kind, m.entity_id, m.group
    out.dedup_key, out.max_attempts = m.dedup_key, m.max_attempts
    out.leased_by, out.last_error, out.reason = m.leased_by, m.last_error, m.reason
    out.is_blocked = m.is_blocked
    if m.tag1 is not None:
        out.tags = _tags(m.tag1, m.tag2)
    if m.expires_at is not None:
        out.expires_at = to_text(m.expires_at)
    if m.first_leased_at is not None:
        out.first_leased_at = to_text(m.first_leased_at)
    if m.timeout_ms or m.retries_timeouts or m.crashes or m.dedup_until or m.progress or m.route:
        _say_more(out, m)
    return out


def _say_more(out: MessageOut, m: Message) -> None:
    """What few messages have."""
    out.timeout_ms, out.retries_timeouts = m.timeout_ms, m.retries_timeouts
    out.crashes, out.dedup_until, out.route = m.crashes, m.dedup_until, m.route
    if m.progress is not None:
        out.progress = msgspec.Raw(m.progress.encode())
    if m.started_at is not None:
        out.started_at = to_text(m.started_at)
    end = deadline(m) if m.state is State.LEASED else None
    if end is not None:
        out.deadline_at = to_text(end)


def sent_out(sent: Sent) -> SentOut:
    return SentOut(sent.id, sent.is_duplicate)


def acted_out(acted: Acted) -> ActedOut:
    return ActedOut(acted.id, acted.state, to_text(acted.due_at))


def _tags(*tags: str | None) -> list[str]:
    return [tag for tag in tags if tag is not None]
