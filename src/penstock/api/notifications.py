"""Notifications: messages due at a set time, found again by their tags."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal, Self

from msgspec import UNSET, Meta, UnsetType

from penstock.api.messages import Acted, Page
from penstock.api.operation import (
    AnswerRecord,
    Cursor,
    Id,
    Instant,
    InstantOrMs,
    InstantOrText,
    Json,
    JsonIn,
    Limit,
    Next,
    Operation,
    QueryRecord,
    QueueName,
    RequestRecord,
    about,
)
from penstock.api.queues import Cancelled
from penstock.api.sends import Draft
from penstock.domain.access.api_key import Role, Scope
from penstock.domain.errors import QueueFull, QueueNotFound, WrongState
from penstock.domain.message import notification
from penstock.domain.message.history import Ending
from penstock.domain.message.lifecycle import Content, Message, State
from penstock.domain.message.notification import FUTURE_TOKEN, OWN, USER_TOKEN

Which = Literal["future", "leased", "live"]


class NewNotification(Draft, kw_only=True):
    queue: Annotated[str, about("The name of its queue.")]
    user_token: Annotated[
        str | None, about("A token of the application, passed to the handler.")
    ] = None

    @property
    def is_idempotent(self) -> bool:
        return self.dedup_key is not None


class Change(RequestRecord):
    """Omitted fields stay unchanged."""

    due_at: Annotated[
        InstantOrMs | None, about("When it is due: from then on it can be claimed.")
    ] = None
    body: Annotated[JsonIn | UnsetType, about("Any JSON value.")] = UNSET
    tags: Annotated[tuple[str, ...] | None, about("Up to two tags, for searches.")] = None
    kind: Annotated[str | None, about("Selects the handler in the worker.")] = None


class Recorded(AnswerRecord, frozen=True):
    id: Annotated[Id, about("The id of the notification.")]
    is_duplicate: Annotated[
        bool, about("True if the dedup key was taken; the id is that of the first message.")
    ]
    due_at: Annotated[Instant, about("When it is due: from then on it can be claimed.")]
    future_user_token: Annotated[
        str | None, about("A new token for the work of the handler. Null for a duplicate.")
    ]


class Notification(AnswerRecord, frozen=True, omit_defaults=True):
    """A notification, live or ended; fields without a value are left out."""

    id: Annotated[Id, about("The id of the notification.")]
    queue: Annotated[str, about("The name of its queue.")]
    state: Annotated[State, about("The state of the message.")]
    sent_at: Annotated[Instant, about("When it was recorded.")]
    due_at: Annotated[Instant | None, about("The instant it was recorded for or moved to.")] = None
    next_due_at: Annotated[
        Instant | None, about("When it can be claimed again after a failure.")
    ] = None
    body: Annotated[Json, about("Any JSON value.")] = None
    kind: Annotated[str | None, about("Selects the handler in the worker.")] = None
    tags: Annotated[tuple[str, ...], about("Up to two tags, for searches.")] = ()
    user_token: Annotated[str | None, about("The token that the application recorded it with.")] = (
        None
    )
    future_user_token: Annotated[str | None, about("The token for the work of the handler.")] = None
    attributes: Annotated[
        dict[str, str] | None, about("Strings sent along with the body, by name.")
    ] = None
    attempts: Annotated[int, about("How many claims counted as attempts.")] = 0
    failures: Annotated[int, about("How many attempts failed.")] = 0
    leased_by: Annotated[str | None, about("The worker that last claimed it.")] = None
    leased_until: Annotated[Instant | None, about("When the lease expires.")] = None
    last_error: Annotated[str | None, about("The error of the last failed attempt.")] = None
    reason: Annotated[str | None, about("Why it was buried or cancelled.")] = None
    finished_at: Annotated[
        Instant | None, about("When it was completed, died or was cancelled.")
    ] = None

    @classmethod
    def of(
        cls,
        queue: str,
        message: Message | Ending,
        content: Content | None,
        instant: Callable[[int], Instant],
        json_value: Callable[[str], Any],
    ) -> Self:
        m = message
        attributes = (content and content.attributes) or {}
        planned = notification.planned_at(attributes)
        next_due_at = leased_until = finished_at = None
        if isinstance(m, Ending):
            finished_at = m.finished_at
        elif m.state is State.LEASED:
            leased_until = m.due_at
        elif planned is None:
            planned = m.due_at
        elif planned != m.due_at:
            next_due_at = m.due_at
        return cls(
            id=m.id,
            queue=queue,
            state=m.outcome if isinstance(m, Ending) else m.state,
            sent_at=instant(m.sent_at),
            due_at=None if planned is None else instant(planned),
            next_due_at=None if next_due_at is None else instant(next_due_at),
            body=None if content is None else json_value(content.body),
            kind=m.kind,
            tags=tuple(tag for tag in (m.tag1, m.tag2) if tag is not None),
            user_token=attributes.get(USER_TOKEN),
            future_user_token=attributes.get(FUTURE_TOKEN),
            attributes={n: text for n, text in attributes.items() if n not in OWN} or None,
            attempts=m.attempts,
            failures=m.failures,
            leased_by=m.leased_by,
            leased_until=None if leased_until is None else instant(leased_until),
            last_error=m.last_error,
            reason=m.reason,
            finished_at=None if finished_at is None else instant(finished_at),
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


class SearchPastNotifications(ByTags, rename={"from_at": "from", "to_at": "to"}):
    from_at: Annotated[
        InstantOrText | None, about("Only notifications that ended at this instant or later.")
    ] = None
    to_at: Annotated[
        InstantOrText | None, about("Only notifications that ended before this instant.")
    ] = None
    limit: Limit = 100
    cursor: Cursor = None


RECORD = Operation(
    name="recordNotification",
    method="POST",
    path="/v1/notifications",
    summary="Record a notification: a message that is due at a set time.",
    role=Role.PRODUCE,
    scope=Scope.NAMED,
    request=NewNotification,
    example={
        "queue": "mail",
        "due_at": "2031-12-24T18:00:00Z",
        "body": {"invoice": 7},
        "tags": ["account-1", "tenant-1"],
    },
    answer=Recorded,
    status=201,
    errors=(QueueFull, QueueNotFound),
)
FIND = Operation(
    name="findNotifications",
    method="GET",
    path="/v1/notifications",
    summary="Find live notifications by their tags, in the order they were recorded.",
    role=Role.READ,
    scope=Scope.NAMED,
    query=Find,
    answer=Notifications,
    errors=(QueueNotFound,),
)
REMOVE_ALL = Operation(
    name="removeNotifications",
    method="DELETE",
    path="/v1/notifications",
    summary="Cancel all unclaimed notifications with these tags.",
    role=Role.OPERATE,
    scope=Scope.NAMED,
    query=ByTags,
    answer=Cancelled,
    errors=(QueueNotFound,),
)
PAST = Operation(
    name="pastNotifications",
    method="GET",
    path="/v1/notifications/history",
    summary="Find notifications that have ended by their tags, newest first.",
    role=Role.READ,
    scope=Scope.NAMED,
    query=SearchPastNotifications,
    answer=Notifications,
)
GET = Operation(
    name="getNotification",
    method="GET",
    path="/v1/notifications/{id}",
    summary="Retrieve a notification, live or from history.",
    role=Role.READ,
    scope=Scope.NAMED,
    answer=Notification,
)
CHANGE = Operation(
    name="changeNotification",
    method="PATCH",
    path="/v1/notifications/{id}",
    summary="Change the date, body, kind or tags of an unclaimed notification.",
    role=Role.OPERATE,
    scope=Scope.NAMED,
    request=Change,
    example={"due_at": "2031-12-31T18:00:00Z"},
    answer=Acted,
    errors=(WrongState,),
    is_idempotent=True,
)
REMOVE = Operation(
    name="removeNotification",
    method="DELETE",
    path="/v1/notifications/{id}",
    summary="Cancel an unclaimed notification.",
    role=Role.OPERATE,
    scope=Scope.NAMED,
    answer=Acted,
    errors=(WrongState,),
)
FIND_MESSAGES = Operation(
    name="findMessages",
    method="GET",
    path="/v1/messages",
    summary="Find live messages by their tags, in the order they were sent.",
    role=Role.READ,
    scope=Scope.NAMED,
    query=Find,
    answer=Page,
    errors=(QueueNotFound,),
)
