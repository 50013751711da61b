"""Recurring work: messages sent on a schedule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Self

import msgspec
from msgspec import Meta
from msgspec.structs import asdict

from penstock.api.operation import (
    AnswerRecord,
    Cursor,
    DurationMs,
    Id,
    Instant,
    Limit,
    Next,
    Operation,
    Positive,
    QueryRecord,
    RequestRecord,
    about,
)
from penstock.domain.access.api_key import Role, Scope
from penstock.domain.errors import InvalidRequest, QueueFull, QueueNotFound
from penstock.domain.queue.queue import DedupUntil
from penstock.domain.schedule.schedule import (
    CatchUp,
    Cron,
    FixedInterval,
    Overlap,
    Rhythm,
    Schedule,
    Template,
)

MAX_PREVIEW = 1_000

# --- fields shared by several records ---

CronExpression = Annotated[
    str | None,
    about("A cron expression with five fields, or six with seconds in front."),
]
EveryMs = Annotated[
    DurationMs | None,
    about("The interval between firings, which fall on its multiples since 1970."),
]
ToQueue = Annotated[str, about("The queue that the messages are sent to.")]
Body = Annotated[Any, about("The body of each message: any JSON value.")]
Kind = Annotated[str | None, about("The kind of each message, which selects a handler.")]
EntityId = Annotated[str | None, about("The id of the thing the messages are about, for searches.")]
Tags = Annotated[tuple[str, ...], about("Up to two tags, for searches.")]
Group = Annotated[
    str | None,
    about("In a queue ordered by group, messages of a group are handled one at a time."),
]
Priority = Annotated[int, about("Messages with a smaller number are claimed first.")]
Attributes = Annotated[dict[str, str], about("Strings sent along with the body, by name.")]
MaxAttempts = Annotated[
    Positive | None,
    about("Overrides the queue's `max_attempts`."),
]
ExpiresInMs = Annotated[
    DurationMs | None,
    about("How long after its firing a message is cancelled if it is still unclaimed."),
]
TimeoutMs = Annotated[
    DurationMs | None,
    about("How long an attempt may take. Null: as long as its lease is extended."),
]
RetriesTimeouts = Annotated[
    bool, about("Retry after a timeout. False: a timeout is final, and the message dies.")
]
Route = Annotated[
    str | None, about("Workers ask the circuit of this route before they run a message.")
]
DedupKey = Annotated[
    str | None, about("A second message with this key is not sent within the deduplication window.")
]
DedupKeyUntil = Annotated[
    DedupUntil | None,
    about("How long its dedup key blocks others. Null: for the deduplication window."),
]
CatchUpPolicy = Annotated[
    CatchUp, about("What happens to firings that were missed while no server was running.")
]
OverlapPolicy = Annotated[
    Overlap, about("What a firing does while the message of the previous firing has not ended.")
]
Owner = Annotated[
    str | None, about("The application that declared it. Absent if it was created by hand.")
]


_TEMPLATE_FIELDS = Template.__struct_fields__


class RhythmFields(RequestRecord, kw_only=True):
    cron: CronExpression = None
    zone: Annotated[str, about("The time zone of the cron expression.")] = "UTC"
    every_ms: EveryMs = None

    def rhythm(self) -> Rhythm:
        if (self.cron is None) == (self.every_ms is None):
            raise InvalidRequest("give cron or every_ms: one of them")
        if self.every_ms is not None:
            return FixedInterval(self.every_ms)
        return Cron(self.cron or "", self.zone)


class NewRecurring(RhythmFields, kw_only=True):
    queue: ToQueue
    body: Annotated[msgspec.Raw, about("The body of each message: any JSON value.")] = (
        msgspec.field(default_factory=lambda: msgspec.Raw(b"null"))
    )
    kind: Kind = None
    entity_id: EntityId = None
    tags: Tags = ()
    group: Group = None
    priority: Priority = 0
    attributes: Attributes = msgspec.field(default_factory=dict)
    max_attempts: MaxAttempts = None
    expires_in_ms: ExpiresInMs = None
    timeout_ms: TimeoutMs = None
    retries_timeouts: RetriesTimeouts = False
    route: Route = None
    dedup_key: DedupKey = None
    dedup_until: DedupKeyUntil = None
    catch_up: CatchUpPolicy = CatchUp.ONE
    overlap: OverlapPolicy = Overlap.ALLOW
    owner: Owner = None

    def template(self, body: str) -> Template:
        """The message of each firing, with this JSON text as its body."""
        values = {name: getattr(self, name) for name in _TEMPLATE_FIELDS}
        return Template(**(values | {"body": body}))


class Retire(RequestRecord):
    owner: Annotated[str, about("The application.")]
    declared: Annotated[
        tuple[str, ...], about("The names of all recurring work that the application declares now.")
    ]


class Retired(AnswerRecord, frozen=True):
    retired: Annotated[list[str], about("The names of the recurring work that was removed.")]


class Preview(RhythmFields, kw_only=True):
    count: Annotated[int, about("How many instants to return.")] = 10


class Recurring(AnswerRecord, frozen=True, omit_defaults=True):
    """Recurring work; fields without a value are left out."""

    name: Annotated[str, about("The name of the recurring work.")]
    queue: ToQueue
    body: Body
    catch_up: CatchUpPolicy
    overlap: OverlapPolicy
    is_paused: Annotated[bool, about("True while firings are paused.")]
    created_at: Annotated[Instant, about("When it was created.")]
    changed_at: Annotated[Instant, about("When it was last changed.")]
    fired: Annotated[int, about("How many times it has fired.")]
    skipped: Annotated[int, about("How many firings `catch_up` and `overlap` skipped.")]
    cron: CronExpression = None
    zone: Annotated[str | None, about("The time zone of the cron expression.")] = None
    every_ms: EveryMs = None
    kind: Kind = None
    entity_id: EntityId = None
    tags: Tags = ()
    group: Group = None
    priority: Priority = 0
    attributes: Attributes = msgspec.field(default_factory=dict)
    max_attempts: MaxAttempts = None
    expires_in_ms: ExpiresInMs = None
    timeout_ms: TimeoutMs = None
    retries_timeouts: RetriesTimeouts = False
    route: Route = None
    dedup_key: DedupKey = None
    dedup_until: DedupKeyUntil = None
    next_at: Annotated[Instant | None, about("The next firing.")] = None
    last_at: Annotated[Instant | None, about("The scheduled instant of the last firing.")] = None
    last_id: Annotated[str | None, about("The id of the message sent by the last firing.")] = None
    last_error: Annotated[
        str | None, about("Why the message of the last firing could not be sent.")
    ] = None
    owner: Owner = None

    @classmethod
    def of(
        cls,
        schedule: Schedule,
        instant: Callable[[int], Instant],
        json_value: Callable[[str], Any],
    ) -> Self:
        rhythm, template = schedule.rhythm, schedule.template
        cron = rhythm if isinstance(rhythm, Cron) else None
        return cls(
            name=schedule.name,
            catch_up=schedule.catch_up,
            overlap=schedule.overlap,
            is_paused=schedule.is_paused,
            created_at=instant(schedule.created_at),
            changed_at=instant(schedule.changed_at),
            fired=schedule.fired_total,
            skipped=schedule.skipped_total,
            cron=None if cron is None else cron.expression,
            zone=None if cron is None else cron.zone,
            every_ms=rhythm.every_ms if isinstance(rhythm, FixedInterval) else None,
            next_at=None if schedule.next_at is None else instant(schedule.next_at),
            last_at=None if schedule.last_at is None else instant(schedule.last_at),
            last_id=schedule.last_id,
            last_error=schedule.last_error,
            owner=schedule.owner,
            **(asdict(template) | {"body": json_value(template.body)}),
        )


class RecurringPage(AnswerRecord, frozen=True):
    recurring: Annotated[list[Recurring], about("Recurring work, by name.")]
    next: Next


class Run(AnswerRecord, frozen=True):
    id: Annotated[Id, about("The id of the message that was sent.")]


class Instants(AnswerRecord, frozen=True):
    instants: Annotated[list[Instant], about("The next firings.")]


class Paging(QueryRecord):
    limit: Limit = 100
    cursor: Cursor = None


class Count(QueryRecord):
    count: Annotated[
        int, Meta(description="How many instants to return.", ge=1, le=MAX_PREVIEW, examples=[3])
    ] = 10


LIST = Operation(
    name="listRecurring",
    method="GET",
    path="/v1/recurring",
    summary="List recurring work by name.",
    role=Role.READ,
    scope=Scope.FILTERED,
    query=Paging,
    answer=RecurringPage,
)
PREVIEW_RHYTHM = Operation(
    name="previewRhythm",
    method="POST",
    path="/v1/recurring/preview",
    summary="Preview the next firings of a cron expression or an interval before using it.",
    role=Role.READ,
    scope=Scope.NONE,
    request=Preview,
    example={"cron": "30 2 * * *", "zone": "Europe/Berlin", "count": 3},
    answer=Instants,
    is_idempotent=True,
)
RETIRE = Operation(
    name="retireRecurring",
    method="POST",
    path="/v1/recurring/retire",
    summary="Delete recurring work that an application declared earlier and no longer declares.",
    role=Role.OPERATE,
    scope=Scope.FILTERED,
    request=Retire,
    example={"owner": "shop.jobs", "declared": ["nightly_report"]},
    answer=Retired,
    is_idempotent=True,
)
PUT = Operation(
    name="putRecurring",
    method="PUT",
    path="/v1/recurring/{schedule}",
    summary="Create or replace recurring work. An identical request changes nothing.",
    role=Role.OPERATE,
    scope=Scope.NAMED,
    request=NewRecurring,
    example={"queue": "mail", "cron": "30 2 * * *", "body": {"report": "nightly"}},
    answer=Recurring,
    errors=(QueueNotFound,),
    is_idempotent=True,
)
GET = Operation(
    name="getRecurring",
    method="GET",
    path="/v1/recurring/{schedule}",
    summary="Retrieve recurring work with its next and its last firing.",
    role=Role.READ,
    scope=Scope.NAMED,
    answer=Recurring,
)
REMOVE: Operation[None] = Operation(
    name="removeRecurring",
    method="DELETE",
    path="/v1/recurring/{schedule}",
    summary="Delete recurring work; messages already sent stay.",
    role=Role.OPERATE,
    scope=Scope.NAMED,
    status=204,
)
PREVIEW = Operation(
    name="previewRecurring",
    method="GET",
    path="/v1/recurring/{schedule}/preview",
    summary="Preview the next firings of recurring work.",
    role=Role.READ,
    scope=Scope.NAMED,
    query=Count,
    answer=Instants,
)
PAUSE = Operation(
    name="pauseRecurring",
    method="POST",
    path="/v1/recurring/{schedule}/pause",
    summary="Pause the firings of recurring work.",
    role=Role.OPERATE,
    scope=Scope.NAMED,
    answer=Recurring,
)
RESUME = Operation(
    name="resumeRecurring",
    method="POST",
    path="/v1/recurring/{schedule}/resume",
    summary="Resume firings; those that fell into the pause are not caught up.",
    role=Role.OPERATE,
    scope=Scope.NAMED,
    answer=Recurring,
)
RUN = Operation(
    name="runRecurring",
    method="POST",
    path="/v1/recurring/{schedule}/run",
    summary="Send the message once now, in addition to its firings.",
    role=Role.OPERATE,
    scope=Scope.NAMED,
    answer=Run,
    status=201,
    errors=(QueueFull, QueueNotFound),
)
