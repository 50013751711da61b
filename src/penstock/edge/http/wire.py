"""The JSON of the native API, in and out.  Unknown fields are refused: no typo goes unseen."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from penstock.domain.draft import Draft
from penstock.domain.errors import InvalidRequest
from penstock.domain.history import Attempt, Ending
from penstock.domain.lease import Verb
from penstock.domain.message import Content, Message
from penstock.edge.http.errors import ErrorBody
from penstock.edge.instants import from_text, to_text
from penstock.ports.store import Acted
from penstock.services.queues import QueueView

T = TypeVar("T")


class DraftIn(msgspec.Struct, forbid_unknown_fields=True):
    body: msgspec.Raw
    attributes: dict[str, str] | None = None
    kind: str | None = None
    entity_id: str | None = None
    tags: tuple[str, ...] = ()
    group: str | None = None
    priority: int = 0
    due_at: int | str | None = None
    delay_ms: int | None = None
    dedup_key: str | None = None
    expires_at: int | str | None = None
    expires_in_ms: int | None = None
    max_attempts: int | None = None
    trace: str | None = None

    def draft(self) -> Draft:
        try:
            body = str(self.body, "utf-8")
        except UnicodeDecodeError:
            raise InvalidRequest("the body is not valid UTF-8") from None
        due_at, expires_at = self.due_at, self.expires_at
        return Draft(
            body=body,
            attributes=self.attributes,
            kind=self.kind,
            entity_id=self.entity_id,
            tags=self.tags,
            group=self.group,
            priority=self.priority,
            due_at=None if due_at is None else from_text("due_at", due_at),
            delay_ms=self.delay_ms,
            dedup_key=self.dedup_key,
            expires_at=None if expires_at is None else from_text("expires_at", expires_at),
            expires_in_ms=self.expires_in_ms,
            max_attempts=self.max_attempts,
            trace=self.trace,
        )


class DraftsIn(msgspec.Struct, forbid_unknown_fields=True):
    messages: list[msgspec.Raw]  # each is decoded for itself: one bad draft spoils no other


class ClaimIn(msgspec.Struct, forbid_unknown_fields=True):
    limit: int = 1
    wait_ms: int = 0
    lease_ms: int | None = None
    claimed_by: str | None = None


class ActIn(msgspec.Struct, forbid_unknown_fields=True):
    """The fields of all acts; which of them mean something depends on the verb."""

    error: str | None = None
    reason: str | None = None
    retry_in_ms: int | None = None
    delay_ms: int | None = None
    lease_ms: int | None = None

    def check(self, verb: Verb) -> None:
        """Raises InvalidRequest for a field that means nothing to this verb."""
        for name in ActIn.__struct_fields__:
            if getattr(self, name) is not None and name not in ACT_FIELDS[verb]:
                raise InvalidRequest(f"{name} means nothing to {verb.value}")


ACT_FIELDS = {
    Verb.COMPLETE: (),
    Verb.FAIL: ("error", "retry_in_ms"),
    Verb.RELEASE: ("delay_ms",),
    Verb.EXTEND: ("lease_ms",),
    Verb.SNOOZE: ("delay_ms",),
    Verb.BURY: ("reason",),
    Verb.CANCEL: ("reason",),
}


class BatchActIn(ActIn, forbid_unknown_fields=True, kw_only=True):
    receipt: str
    act: Verb


class ActsIn(msgspec.Struct, forbid_unknown_fields=True):
    acts: list[BatchActIn]


class ReasonIn(msgspec.Struct, forbid_unknown_fields=True):
    reason: str | None = None


class RescheduleIn(msgspec.Struct, forbid_unknown_fields=True):
    due_at: int | str


class RedriveIn(msgspec.Struct, forbid_unknown_fields=True):
    limit: int | None = None
    to: str | None = None


class SentOut(msgspec.Struct):
    id: str
    is_duplicate: bool = False


class Refused(msgspec.Struct):
    error: ErrorBody


class ResultsOut(msgspec.Struct):
    results: list[Any]


class ActedOut(msgspec.Struct):
    id: str
    state: str
    due_at: str


class MessageOut(msgspec.Struct, omit_defaults=True):
    """A message as it is shown; what it does not have is left out."""

    id: str
    queue: str
    state: str
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


class ClaimedOut(msgspec.Struct):
    messages: list[MessageOut]


class PageOut(msgspec.Struct):
    messages: list[MessageOut]
    next: str | None


class EndingOut(msgspec.Struct, omit_defaults=True):
    id: str
    queue: str
    outcome: str
    sent_at: str
    finished_at: str
    attempts: int
    failures: int
    size: int
    reason: str | None = None
    kind: str | None = None
    entity_id: str | None = None
    tags: list[str] = []
    group: str | None = None
    priority: int = 0
    first_leased_at: str | None = None
    leased_at: str | None = None
    leased_by: str | None = None
    last_error: str | None = None


class AttemptOut(msgspec.Struct, omit_defaults=True):
    lease_no: int
    outcome: str
    ended_at: str
    leased_at: str | None = None
    leased_by: str | None = None
    error: str | None = None


class HistoryOut(msgspec.Struct):
    endings: list[EndingOut]
    next: str | None


class PastOut(msgspec.Struct):
    endings: list[EndingOut]
    attempts: list[AttemptOut]


class QueueOut(msgspec.Struct):
    name: str
    settings: Any
    is_paused: bool
    created_at: str
    counts: dict[str, int]
    totals: dict[str, int]
    oldest_ready_at: str | msgspec.UnsetType | None = msgspec.UNSET


class QueuesOut(msgspec.Struct):
    queues: list[QueueOut]
    next: str | None


class StatsOut(msgspec.Struct):
    version: str
    backend: str
    queues: int
    waiting_claims: int
    now: str
    counts: dict[str, int]
    totals: dict[str, int]


def decode(decoder: msgspec.json.Decoder[T], body: bytes | msgspec.Raw) -> T:
    """Raises InvalidRequest that says what is wrong and where."""
    try:
        return decoder.decode(body or b"{}")
    except msgspec.DecodeError as error:
        raise InvalidRequest(str(error)) from None
    except (RecursionError, UnicodeDecodeError):
        raise InvalidRequest("the JSON is nested too deeply or not valid UTF-8") from None


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
    return out


def ending_out(ending: Ending) -> EndingOut:
    e = ending
    return EndingOut(
        e.id,
        e.queue,
        e.outcome,
        to_text(e.sent_at),
        to_text(e.finished_at),
        e.attempts,
        e.failures,
        e.size,
        e.reason,
        e.kind,
        e.entity_id,
        _tags(e.tag1, e.tag2),
        e.group,
        e.priority,
        None if e.first_leased_at is None else to_text(e.first_leased_at),
        None if e.leased_at is None else to_text(e.leased_at),
        e.leased_by,
        e.last_error,
    )


def attempt_out(attempt: Attempt) -> AttemptOut:
    a = attempt
    leased_at = None if a.leased_at is None else to_text(a.leased_at)
    return AttemptOut(a.lease_no, a.outcome, to_text(a.ended_at), leased_at, a.leased_by, a.error)


def acted_out(acted: Acted) -> ActedOut:
    return ActedOut(acted.id, acted.state, to_text(acted.due_at))


def queue_out(view: QueueView) -> QueueOut:
    oldest = view.oldest_ready_at
    return QueueOut(
        view.queue.name,
        view.queue.settings,
        view.queue.is_paused,
        to_text(view.queue.created_at),
        *counts_out(view.counts),
        to_text(oldest) if isinstance(oldest, int) else oldest,
    )


def counts_out(counts: Any) -> tuple[dict[str, int], dict[str, int]]:
    now = {name: getattr(counts, name) for name in ("waiting", "ready", "leased", "dead")}
    totals = {
        name.removesuffix("_total"): getattr(counts, name)
        for name in counts.__struct_fields__
        if name.endswith("_total")
    }
    totals["expired_leases"] = totals.pop("expired")
    return now, totals


def _tags(*tags: str | None) -> list[str]:
    return [tag for tag in tags if tag is not None]
