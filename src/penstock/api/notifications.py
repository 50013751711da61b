"""Notifications: messages due at a set time, found again by their tags."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal, Self

from msgspec import UNSET, Meta, UnsetType

from penstock.api.browsing import Page
from penstock.api.messages import (
    Acted,
    Attempts,
    Attributes,
    Body,
    Draft,
    DueAt,
    EndReason,
    Failures,
    FinishedAt,
    IsDuplicate,
    Kind,
    LastError,
    LeasedBy,
    LeasedUntil,
    MessageState,
    NewDueAt,
    Preview,
    QueueOf,
    Tags,
)
from penstock.api.operation import (
    AnswerRecord,
    Cursor,
    Id,
    Instant,
    InstantOrText,
    JsonIn,
    Limit,
    Next,
    QueryRecord,
    QueueName,
    RequestRecord,
    ToInstant,
    about,
    named,
)
from penstock.api.queues import Cancelled
from penstock.domain.access.api_key import Role
from penstock.domain.errors import QueueFull, QueueNotFound, WrongState
from penstock.domain.message import notification
from penstock.domain.message.history import Ending, tags_of
from penstock.domain.message.lifecycle import Content, Message, State
from penstock.domain.message.notification import FUTURE_TOKEN, OWN, USER_TOKEN

Which = Literal["future", "leased", "live"]


class NewNotification(Draft, kw_only=True):
    queue: QueueOf
    user_token: Annotated[
        str | None, about("A token of the application, passed to the handler.")
    ] = None

    @property
    def is_idempotent(self) -> bool:
        return self.dedup_key is not None


class Change(RequestRecord):
    """Omitted fields stay unchanged."""

    due_at: NewDueAt = None
    body: Annotated[JsonIn | UnsetType, about("Any JSON value.")] = UNSET
    tags: Annotated[tuple[str, ...] | None, about("Up to two tags, for searches.")] = None
    kind: Kind = None


class Recorded(AnswerRecord, frozen=True):
    id: Annotated[Id, about("The id of the notification.")]
    is_duplicate: IsDuplicate
    due_at: DueAt
    future_user_token: Annotated[
        str | None, about("A new token for the work of the handler. Null for a duplicate.")
    ]


class Notification(AnswerRecord, frozen=True, omit_defaults=True):
    """A notification, live or ended; fields without a value are left out."""

    id: Annotated[Id, about("The id of the notification.")]
    queue: QueueOf
    state: MessageState
    sent_at: Annotated[Instant, about("When it was recorded.")]
    due_at: Annotated[Instant | None, about("The instant it was recorded for or moved to.")] = None
    next_due_at: Annotated[
        Instant | None, about("When it can be claimed again after a failure.")
    ] = None
    body: Body = None
    kind: Kind = None
    tags: Tags = ()
    user_token: Annotated[str | None, about("The token that the application recorded it with.")] = (
        None
    )
    future_user_token: Annotated[str | None, about("The token for the work of the handler.")] = None
    attributes: Attributes = None
    attempts: Attempts = 0
    failures: Failures = 0
    leased_by: LeasedBy = None
    leased_until: LeasedUntil = None
    last_error: LastError = None
    reason: EndReason = None
    finished_at: FinishedAt = None

    @classmethod
    def of(
        cls,
        queue: str,
        message: Message | Ending,
        content: Content | None,
        instant: ToInstant,
        json_value: Callable[[str], Any],
    ) -> Self:
        m = message
        attributes = (content and content.attributes) or {}
        planned = notification.planned_at(attributes)
        next_due_at = leased_until = None
        if isinstance(m, Message):
            if m.state is State.LEASED:
                leased_until = m.due_at
            elif planned is None:
                planned = m.due_at
            elif planned != m.due_at:
                next_due_at = m.due_at
        return cls.copy_of(
            m,
            instant,
            queue=queue,
            state=m.outcome if isinstance(m, Ending) else m.state,
            due_at=None if planned is None else instant(planned),
            next_due_at=None if next_due_at is None else instant(next_due_at),
            body=None if content is None else json_value(content.body),
            tags=tags_of(m),
            user_token=attributes.get(USER_TOKEN),
            future_user_token=attributes.get(FUTURE_TOKEN),
            attributes={n: text for n, text in attributes.items() if n not in OWN} or None,
            leased_until=None if leased_until is None else instant(leased_until),
        )


class Notifications(AnswerRecord, frozen=True):
    notifications: Annotated[list[Notification], about("The notifications.")]
    next: Next


class ByTags(QueryRecord):
    """Both tags, one tag in its place, or one tag in either place; in one queue or in all."""

    queue: Annotated[
        QueueName | None, Meta(description="Only messages in this queue.", examples=["mail"])
    ] = None
    tag: Annotated[str | None, about("Only messages with this tag, the first or the second.")] = (
        None
    )
    tag1: Annotated[str | None, about("Only messages with this first tag.")] = None
    tag2: Annotated[
        str | None,
        Meta(description="Only messages with this second tag.", examples=["tenant-1"]),
    ] = None


class Find(ByTags):
    which: Annotated[
        Which,
        Meta(
            description="`future`: unclaimed, due or not. `leased`: claimed. `live`: both.",
            examples=["future"],
            extra_json_schema={"type": "string"},
        ),
    ] = "live"
    due_from: Annotated[
        InstantOrText | None,
        about("Only unclaimed notifications that are due at this instant or later."),
    ] = None
    due_before: Annotated[
        InstantOrText | None,
        about("Only unclaimed notifications that are due before this instant."),
    ] = None
    limit: Limit = 100
    cursor: Cursor = None


class FindMessages(Find):
    preview: Preview = None


class SearchPastNotifications(ByTags, rename={"from_at": "from", "to_at": "to"}):
    from_at: Annotated[
        InstantOrText | None, about("Only notifications that ended at this instant or later.")
    ] = None
    to_at: Annotated[
        InstantOrText | None, about("Only notifications that ended before this instant.")
    ] = None
    limit: Limit = 100
    cursor: Cursor = None


RECORD = named.post(
    "recordNotification",
    "/v1/notifications",
    "Record a notification: a message that is due at a set time.",
    Recorded,
    role=Role.PRODUCE,
    request=NewNotification,
    example={
        "queue": "mail",
        "due_at": "2031-12-24T18:00:00Z",
        "body": {"invoice": 7},
        "tags": ["account-1", "tenant-1"],
    },
    status=201,
    errors=(QueueFull, QueueNotFound),
)
FIND = named.get(
    "findNotifications",
    "/v1/notifications",
    "Find live notifications by their tags, in the order they were recorded.",
    Notifications,
    query=Find,
    errors=(QueueNotFound,),
)
REMOVE_ALL = named.delete(
    "removeNotifications",
    "/v1/notifications",
    "Cancel all unclaimed notifications with these tags.",
    Cancelled,
    query=ByTags,
    errors=(QueueNotFound,),
)
PAST = named.get(
    "pastNotifications",
    "/v1/notifications/history",
    "Find notifications that have ended by their tags, newest first.",
    Notifications,
    query=SearchPastNotifications,
)
GET = named.get(
    "getNotification",
    "/v1/notifications/{id}",
    "Retrieve a notification, live or from history.",
    Notification,
)
CHANGE = named.patch(
    "changeNotification",
    "/v1/notifications/{id}",
    "Change the date, body, kind or tags of an unclaimed notification.",
    Acted,
    request=Change,
    example={"due_at": "2031-12-31T18:00:00Z"},
    errors=(WrongState,),
)
REMOVE = named.delete(
    "removeNotification",
    "/v1/notifications/{id}",
    "Cancel an unclaimed notification.",
    Acted,
    errors=(WrongState,),
)
FIND_MESSAGES = named.get(
    "findMessages",
    "/v1/messages",
    "Find live messages by their tags, in the order they were sent.",
    Page,
    query=FindMessages,
    errors=(QueueNotFound,),
)
