"""The JSON of recurring work, in and out."""

from __future__ import annotations

import msgspec

from penstock.domain.errors import InvalidRequest
from penstock.domain.queue.queue import DedupUntil
from penstock.domain.schedule.schedule import (
    CatchUp,
    Cron,
    Every,
    Overlap,
    Rhythm,
    Schedule,
    Template,
)
from penstock.edge.instants import to_text
from penstock.operations.json_text import text_of


class RhythmFields(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    cron: str | None = None
    zone: str = "UTC"
    every_ms: int | None = None

    def rhythm(self) -> Rhythm:
        if (self.cron is None) == (self.every_ms is None):
            raise InvalidRequest("give cron or every_ms: one of them")
        if self.every_ms is not None:
            return Every(self.every_ms)
        return Cron(self.cron or "", self.zone)


class NewRecurringIn(RhythmFields, forbid_unknown_fields=True, kw_only=True):
    queue: str
    body: msgspec.Raw = msgspec.field(default_factory=lambda: msgspec.Raw(b"null"))
    kind: str | None = None
    entity_id: str | None = None
    tags: tuple[str, ...] = ()
    group: str | None = None
    priority: int = 0
    attributes: dict[str, str] = {}
    max_attempts: int | None = None
    expires_in_ms: int | None = None
    timeout_ms: int | None = None
    retries_timeouts: bool = False
    route: str | None = None
    dedup_key: str | None = None
    dedup_until: DedupUntil | None = None
    catch_up: CatchUp = CatchUp.ONE
    overlap: Overlap = Overlap.ALLOW
    owner: str | None = None

    def template(self) -> Template:
        return Template(
            queue=self.queue,
            body=text_of(self.body),
            kind=self.kind,
            entity_id=self.entity_id,
            tags=self.tags,
            group=self.group,
            priority=self.priority,
            attributes=self.attributes,
            max_attempts=self.max_attempts,
            expires_in_ms=self.expires_in_ms,
            timeout_ms=self.timeout_ms,
            retries_timeouts=self.retries_timeouts,
            route=self.route,
            dedup_key=self.dedup_key,
            dedup_until=self.dedup_until,
        )


class RetireIn(msgspec.Struct, forbid_unknown_fields=True):
    owner: str
    declared: tuple[str, ...]


class RetiredOut(msgspec.Struct):
    retired: list[str]


class PreviewIn(RhythmFields, forbid_unknown_fields=True, kw_only=True):
    count: int = 10


class RecurringOut(msgspec.Struct, omit_defaults=True, kw_only=True):
    """Recurring work; what it does not have is left out."""

    name: str
    queue: str
    body: msgspec.Raw
    catch_up: CatchUp
    overlap: Overlap
    is_paused: bool
    created_at: str
    changed_at: str
    fired: int
    skipped: int
    cron: str | None = None
    zone: str | None = None
    every_ms: int | None = None
    kind: str | None = None
    entity_id: str | None = None
    tags: tuple[str, ...] = ()
    group: str | None = None
    priority: int = 0
    attributes: dict[str, str] = {}
    max_attempts: int | None = None
    expires_in_ms: int | None = None
    timeout_ms: int | None = None
    retries_timeouts: bool = False
    route: str | None = None
    dedup_key: str | None = None
    dedup_until: DedupUntil | None = None
    next_at: str | None = None
    last_at: str | None = None
    last_id: str | None = None
    last_error: str | None = None
    owner: str | None = None


class RecurringPageOut(msgspec.Struct):
    recurring: list[RecurringOut]
    next: str | None


class RunOut(msgspec.Struct):
    id: str


class InstantsOut(msgspec.Struct):
    instants: list[str]


def recurring_out(schedule: Schedule) -> RecurringOut:
    rhythm, template = schedule.rhythm, schedule.template
    cron = rhythm if isinstance(rhythm, Cron) else None
    return RecurringOut(
        name=schedule.name,
        queue=template.queue,
        body=msgspec.Raw(template.body.encode()),
        catch_up=schedule.catch_up,
        overlap=schedule.overlap,
        is_paused=schedule.is_paused,
        created_at=to_text(schedule.created_at),
        changed_at=to_text(schedule.changed_at),
        fired=schedule.fired_total,
        skipped=schedule.skipped_total,
        cron=None if cron is None else cron.expression,
        zone=None if cron is None else cron.zone,
        every_ms=rhythm.every_ms if isinstance(rhythm, Every) else None,
        kind=template.kind,
        entity_id=template.entity_id,
        tags=template.tags,
        group=template.group,
        priority=template.priority,
        attributes=template.attributes,
        max_attempts=template.max_attempts,
        expires_in_ms=template.expires_in_ms,
        timeout_ms=template.timeout_ms,
        retries_timeouts=template.retries_timeouts,
        route=template.route,
        dedup_key=template.dedup_key,
        dedup_until=template.dedup_until,
        next_at=_told(schedule.next_at),
        last_at=_told(schedule.last_at),
        last_id=schedule.last_id,
        last_error=schedule.last_error,
        owner=schedule.owner,
    )


def _told(instant: int | None) -> str | None:
    return None if instant is None else to_text(instant)
