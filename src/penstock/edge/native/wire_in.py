"""The JSON of the native API as clients send it.  Unknown fields are refused: typos are seen."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from penstock.domain.datetimes import parse_instant
from penstock.domain.errors import InvalidRequest, PenstockError
from penstock.domain.message.draft import Draft
from penstock.domain.message.lease import Verb
from penstock.domain.queue.queue import DedupUntil
from penstock.operations.json_text import text_of

T = TypeVar("T")

_A_DRAFT = {"$ref": "#/components/schemas/DraftIn"}


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
    timeout_ms: int | None = None
    retries_timeouts: bool = False
    dedup_until: DedupUntil | None = None
    route: str | None = None
    dedup_window_ms: int | None = None

    def draft(self) -> Draft:
        body = text_of(self.body)
        due_at, expires_at = self.due_at, self.expires_at
        return Draft(
            body=body,
            attributes=self.attributes,
            kind=self.kind,
            entity_id=self.entity_id,
            tags=self.tags,
            group=self.group,
            priority=self.priority,
            due_at=None if due_at is None else parse_instant("due_at", due_at),
            delay_ms=self.delay_ms,
            dedup_key=self.dedup_key,
            expires_at=None if expires_at is None else parse_instant("expires_at", expires_at),
            expires_in_ms=self.expires_in_ms,
            max_attempts=self.max_attempts,
            trace=self.trace,
            timeout_ms=self.timeout_ms,
            retries_timeouts=self.retries_timeouts,
            dedup_until=self.dedup_until,
            route=self.route,
            dedup_window_ms=self.dedup_window_ms,
        )


class DraftsIn(msgspec.Struct, forbid_unknown_fields=True):
    # Each is decoded for itself: one bad draft spoils no other.
    messages: list[Annotated[msgspec.Raw, Meta(extra_json_schema=_A_DRAFT)]]


class GoodDraftsIn(msgspec.Struct, forbid_unknown_fields=True):
    """The same in one go, when there is nothing wrong with any of them."""

    messages: list[DraftIn]


class ClaimIn(msgspec.Struct, forbid_unknown_fields=True):
    limit: int = 1
    wait_ms: int | None = None
    lease_ms: int | None = None
    claimed_by: str | None = None
    in_a_row: bool = False
    claim_key: str | None = None
    complete: list[str] = []  # receipts of messages that are done
    kinds: tuple[str, ...] | None = None


class ActIn(msgspec.Struct, forbid_unknown_fields=True):
    """The fields of all acts; which of them mean something depends on the verb."""

    error: str | None = None
    reason: str | None = None
    retry_in_ms: int | None = None
    delay_ms: int | None = None
    lease_ms: int | None = None
    is_late_ok: bool | None = None
    is_start: bool | None = None
    progress: Any = None

    def check(self, verb: Verb) -> None:
        """Raises InvalidRequest for a field that means nothing to this verb."""
        for name in ActIn.__struct_fields__:
            if getattr(self, name) is not None and name not in ACT_FIELDS[verb]:
                raise InvalidRequest(f"{name} means nothing to {verb.value}")


ACT_FIELDS = {
    Verb.COMPLETE: ("is_late_ok",),
    Verb.FAIL: ("error", "retry_in_ms"),
    Verb.RELEASE: ("delay_ms",),
    Verb.EXTEND: ("lease_ms", "is_late_ok", "is_start", "progress"),
    Verb.SNOOZE: ("delay_ms", "reason"),
    Verb.BURY: ("reason",),
    Verb.CANCEL: ("reason",),
    Verb.TIME_OUT: ("error", "retry_in_ms"),
    Verb.CRASH: ("error",),
}


def act_body(verb: Verb) -> type[msgspec.Struct] | None:
    """The fields that mean something to a verb, as a type for the document."""
    if not ACT_FIELDS[verb]:
        return None
    types = {field.name: field.type for field in msgspec.structs.fields(ActIn)}
    fields: list[Any] = [(name, types[name], None) for name in ACT_FIELDS[verb]]
    if verb is Verb.SNOOZE:
        fields[0] = ("delay_ms", int)  # the one that must be there
    name = verb.value.title().replace("_", "")
    return msgspec.defstruct(f"{name}In", fields, forbid_unknown_fields=True)


class BatchActIn(ActIn, forbid_unknown_fields=True, kw_only=True):
    receipt: str
    act: Verb


class ActsIn(msgspec.Struct, forbid_unknown_fields=True):
    acts: list[BatchActIn]


class ReasonIn(msgspec.Struct, forbid_unknown_fields=True):
    reason: str | None = None


class EndIn(ReasonIn, forbid_unknown_fields=True):
    is_running_ok: bool = False


class RescheduleIn(msgspec.Struct, forbid_unknown_fields=True):
    due_at: int | str | None = None
    delay_ms: int | None = None


_draft = msgspec.json.Decoder(DraftIn)
_drafts = msgspec.json.Decoder(DraftsIn)
_good_drafts = msgspec.json.Decoder(GoodDraftsIn)


def draft(body: bytes) -> Draft:
    return decode(_draft, body).draft()


def drafts(body: bytes) -> list[DraftIn | PenstockError]:
    """All drafts of a batch; one that is wrong spoils no other."""
    try:
        return [*_good_drafts.decode(body).messages]
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return [_draft_or_error(raw) for raw in decode(_drafts, body).messages]


def _draft_or_error(raw: msgspec.Raw) -> DraftIn | PenstockError:
    try:
        return decode(_draft, raw)
    except InvalidRequest as error:
        return error


def decode(decoder: msgspec.json.Decoder[T], body: bytes | msgspec.Raw) -> T:
    """Raises InvalidRequest that says what is wrong and where."""
    try:
        return decoder.decode(body or b"{}")
    except msgspec.DecodeError as error:
        raise InvalidRequest(str(error)) from None
    except (RecursionError, UnicodeDecodeError):
        raise InvalidRequest("the JSON is nested too deeply or not valid UTF-8") from None
