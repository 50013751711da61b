"""Recurring work: messages sent on a schedule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Self

import msgspec
from msgspec import Meta
from msgspec.structs import asdict

from penstock.api.messages import MessageOptions
from penstock.api.operation import (
    AnswerRecord,
    DurationMs,
    Id,
    Instant,
    Next,
    Operation,
    PageQuery,
    QueryRecord,
    RequestRecord,
    ToInstant,
    about,
    filtered,
    named,
    post,
)
from penstock.domain.access.api_key import Role, Scope
from penstock.domain.errors import InvalidRequest, QueueFull, QueueNotFound
from penstock.domain.schedule.cron import in_words
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

CronExpression = Annotated[
    str | None,
    about("A cron expression with five fields, or six with seconds in front."),
]
EveryMs = Annotated[
    DurationMs | None,
    about("The interval between firings, which fall on its multiples since 1970."),
]
ToQueue = Annotated[str, about("The queue that the messages are sent to.")]
AttributesOfEach = Annotated[dict[str, str], about("Strings sent along with the body, by name.")]
CatchUpPolicy = Annotated[
    CatchUp, about("What happens to firings that were missed while no server was running.")
]
OverlapPolicy = Annotated[
    Overlap, about("What a firing does while the message of the previous firing has not ended.")
]
Owner = Annotated[
    str | None, about("The application that declared it. Absent if it was created by hand.")
]
BODY = about("The body of each message: any JSON value.")


class NewRecurring(MessageOptions, RequestRecord, kw_only=True):
    queue: ToQueue
    body: Annotated[msgspec.Raw, BODY] = msgspec.field(default_factory=lambda: msgspec.Raw(b"null"))
    attributes: AttributesOfEach = msgspec.field(default_factory=dict)
    cron: CronExpression = None
    zone: Annotated[str, about("The time zone of the cron expression.")] = "UTC"
    every_ms: EveryMs = None
    catch_up: CatchUpPolicy = CatchUp.ONE
    overlap: OverlapPolicy = Overlap.ALLOW
    owner: Owner = None

    def template(self, body: str) -> Template:
        """The message of each firing, with this JSON text as its body."""
        values = {name: getattr(self, name) for name in Template.__struct_fields__}
        return Template(**(values | {"body": body}))


class Retire(RequestRecord):
    owner: Annotated[str, about("The application.")]
    declared: Annotated[
        tuple[str, ...], about("The names of all recurring work that the application declares now.")
    ]


class Retired(AnswerRecord, frozen=True):
    retired: Annotated[list[str], about("The names of the recurring work that was removed.")]


class Preview(RequestRecord, kw_only=True):
    cron: CronExpression = None
    zone: Annotated[str, about("The time zone of the cron expression.")] = "UTC"
    every_ms: EveryMs = None
    count: Annotated[int, about("How many instants to return.")] = 10


def rhythm_of(given: NewRecurring | Preview) -> Rhythm:
    """Raises InvalidRequest."""
    if (given.cron is None) == (given.every_ms is None):
        raise InvalidRequest("give either cron or every_ms")
    if given.every_ms is not None:
        return FixedInterval(given.every_ms)
    return Cron(given.cron or "", given.zone)


class Recurring(  # type: ignore[misc]  # frozen, which msgspec allows and mypy does not expect
    MessageOptions, AnswerRecord, frozen=True, omit_defaults=True, kw_only=True
):
    """Recurring work; fields without a value are left out."""

    name: Annotated[str, about("The name of the recurring work.")]
    queue: ToQueue
    body: Annotated[Any, BODY]
    attributes: AttributesOfEach = msgspec.field(default_factory=dict)
    catch_up: CatchUpPolicy
    overlap: OverlapPolicy
    is_paused: Annotated[bool, about("True while firings are paused.")]
    created_at: Annotated[Instant, about("When it was created.")]
    changed_at: Annotated[Instant, about("When it was last changed.")]
    fired: Annotated[int, about("How many times it has fired.")]
    skipped: Annotated[int, about("How many firings `catch_up` and `overlap` skipped.")]
    cron: CronExpression = None
    in_words: Annotated[str | None, about("The cron expression in words.")] = None
    zone: Annotated[str | None, about("The time zone of the cron expression.")] = None
    every_ms: EveryMs = None
    next_at: Annotated[Instant | None, about("The next firing.")] = None
    last_at: Annotated[Instant | None, about("The scheduled instant of the last firing.")] = None
    last_id: Annotated[str | None, about("The id of the message sent by the last firing.")] = None
    last_error: Annotated[
        str | None, about("Why the message of the last firing could not be sent.")
    ] = None
    owner: Owner = None

    @classmethod
    def of(cls, schedule: Schedule, instant: ToInstant, json_value: Callable[[str], Any]) -> Self:
        rhythm, template = schedule.rhythm, schedule.template
        cron = rhythm if isinstance(rhythm, Cron) else None
        return cls.copy_of(
            schedule,
            instant,
            fired=schedule.fired_total,
            skipped=schedule.skipped_total,
            cron=None if cron is None else cron.expression,
            in_words=None if cron is None else in_words(cron.expression),
            zone=None if cron is None else cron.zone,
            every_ms=rhythm.every_ms if isinstance(rhythm, FixedInterval) else None,
            **(asdict(template) | {"body": json_value(template.body)}),
        )


class RecurringPage(AnswerRecord, frozen=True):
    recurring: Annotated[list[Recurring], about("Recurring work, by name.")]
    next: Next


class Run(AnswerRecord, frozen=True):
    id: Annotated[Id, about("The id of the message that was sent.")]


class Instants(AnswerRecord, frozen=True):
    instants: Annotated[list[Instant], about("The next firings.")]


class Count(QueryRecord):
    count: Annotated[
        int, Meta(description="How many instants to return.", ge=1, le=MAX_PREVIEW, examples=[3])
    ] = 10


LIST = filtered.get(
    "listRecurring",
    "/v1/recurring",
    "List recurring work by name.",
    RecurringPage,
    query=PageQuery,
)
PREVIEW_RHYTHM = post(
    "previewRhythm",
    "/v1/recurring/preview",
    "Preview the next firings of a cron expression or an interval before using it.",
    Instants,
    role=Role.READ,
    scope=Scope.NONE,
    request=Preview,
    example={"cron": "30 2 * * *", "zone": "Europe/Berlin", "count": 3},
    is_idempotent=True,
)
RETIRE = filtered.post(
    "retireRecurring",
    "/v1/recurring/retire",
    "Delete recurring work that an application declared earlier and no longer declares.",
    Retired,
    request=Retire,
    example={"owner": "shop.jobs", "declared": ["nightly_report"]},
    is_idempotent=True,
)
PUT = named.put(
    "putRecurring",
    "/v1/recurring/{schedule}",
    "Create or replace recurring work. An identical request changes nothing.",
    Recurring,
    request=NewRecurring,
    example={"queue": "mail", "cron": "30 2 * * *", "body": {"report": "nightly"}},
    errors=(QueueNotFound,),
)
GET = named.get(
    "getRecurring",
    "/v1/recurring/{schedule}",
    "Retrieve recurring work with its next and its last firing.",
    Recurring,
)
REMOVE: Operation[None] = named.delete(
    "removeRecurring",
    "/v1/recurring/{schedule}",
    "Delete recurring work; messages already sent stay.",
    status=204,
)
PREVIEW = named.get(
    "previewRecurring",
    "/v1/recurring/{schedule}/preview",
    "Preview the next firings of recurring work.",
    Instants,
    query=Count,
)
PAUSE = named.post(
    "pauseRecurring",
    "/v1/recurring/{schedule}/pause",
    "Pause the firings of recurring work.",
    Recurring,
)
RESUME = named.post(
    "resumeRecurring",
    "/v1/recurring/{schedule}/resume",
    "Resume firings; those that fell into the pause are not caught up.",
    Recurring,
)
RUN = named.post(
    "runRecurring",
    "/v1/recurring/{schedule}/run",
    "Send the message once now, in addition to its firings.",
    Run,
    status=201,
    errors=(QueueFull, QueueNotFound),
)
