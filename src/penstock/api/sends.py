"""Sending messages to a queue."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, TypedDict

import msgspec
from msgspec import Meta

from penstock.api.operation import (
    AnswerRecord,
    DurationMs,
    Id,
    InstantOrMs,
    JsonIn,
    Operation,
    Positive,
    RequestRecord,
    about,
    one_of,
)
from penstock.domain.access.api_key import Role
from penstock.domain.errors import PenstockError, QueueFull
from penstock.domain.queue.queue import DedupUntil


class Draft(RequestRecord):
    """A message to be sent."""

    body: Annotated[JsonIn, about("Any JSON value.")]
    attributes: Annotated[
        dict[str, str] | None, about("Strings sent along with the body, by name.")
    ] = None
    kind: Annotated[str | None, about("Selects the handler in the worker.")] = None
    entity_id: Annotated[
        str | None, about("The id of the thing the message is about, for searches.")
    ] = None
    tags: Annotated[tuple[str, ...], about("Up to two tags, for searches.")] = ()
    group: Annotated[
        str | None,
        about("In a queue ordered by group, messages of a group are handled one at a time."),
    ] = None
    priority: Annotated[int, about("Messages with a smaller number are claimed first.")] = 0
    due_at: Annotated[
        InstantOrMs | None,
        about("When it becomes due. Defaults to now plus the queue's `delay_ms`."),
    ] = None
    delay_ms: Annotated[
        DurationMs | None, about("The delay until it is due, in place of `due_at`.")
    ] = None
    dedup_key: Annotated[
        str | None,
        about("A second message with this key is not sent within the deduplication window."),
    ] = None
    expires_at: Annotated[
        InstantOrMs | None, about("It is cancelled if it is still unclaimed at this instant.")
    ] = None
    expires_in_ms: Annotated[
        DurationMs | None, about("The time until it expires, in place of `expires_at`.")
    ] = None
    max_attempts: Annotated[Positive | None, about("Overrides the queue's `max_attempts`.")] = None
    trace: Annotated[str | None, about("Trace context, passed on unchanged.")] = None
    timeout_ms: Annotated[
        DurationMs | None,
        about("How long an attempt may take. Null: as long as its lease is extended."),
    ] = None
    retries_timeouts: Annotated[
        bool, about("Retry after a timeout. False: a timeout is final, and the message dies.")
    ] = False
    dedup_until: Annotated[
        DedupUntil | None,
        about("How long its dedup key blocks others. Null: for the deduplication window."),
    ] = None
    route: Annotated[
        str | None, about("Workers ask the circuit of this route before they run it.")
    ] = None
    dedup_window_ms: Annotated[
        DurationMs | None, about("Overrides the queue's `dedup_window_ms`.")
    ] = None


class SendOptions(TypedDict, total=False):
    """The fields of a draft except its body, as keyword arguments."""

    attributes: dict[str, str] | None
    kind: str | None
    entity_id: str | None
    tags: tuple[str, ...]
    group: str | None
    priority: int
    due_at: datetime | None
    delay_ms: int | None
    dedup_key: str | None
    expires_at: datetime | None
    expires_in_ms: int | None
    max_attempts: int | None
    trace: str | None
    timeout_ms: int | None
    retries_timeouts: bool
    dedup_until: DedupUntil | None
    route: str | None
    dedup_window_ms: int | None


_A_DRAFT = Meta(extra_json_schema={"$ref": "#/components/schemas/Draft"})


class Drafts(RequestRecord):
    """Drafts that are decoded one by one, so that an invalid one does not affect the others."""

    messages: Annotated[
        list[Annotated[msgspec.Raw, _A_DRAFT]], about("The messages. Each has its own result.")
    ]


class Sent(AnswerRecord, frozen=True):
    id: Annotated[Id, about("The id of the message.")]
    is_duplicate: Annotated[
        bool, about("True if the dedup key was taken; the id is that of the first message.")
    ] = False


class SendResults(AnswerRecord, frozen=True):
    results: Annotated[
        list[Annotated[Any, one_of("Sent", "ErrorAnswer")]],
        about("One result per message, in the same order."),
    ]


SendResult = Sent | PenstockError  # the result of one draft in a batch, as clients return it

SEND = Operation(
    name="sendMessage",
    method="POST",
    path="/v1/queues/{queue}/messages",
    summary="Send a message. The response is sent once the message is on disk.",
    role=Role.PRODUCE,
    request=Draft,
    example={"body": {"to": "ada@example.org"}, "delay_ms": 0},
    answer=Sent,
    status=201,
    errors=(QueueFull,),
)
SEND_BATCH = Operation(
    name="sendMessages",
    method="POST",
    path="/v1/queues/{queue}/messages/batch",
    summary="Send several messages in one transaction. Each message has its own result.",
    role=Role.PRODUCE,
    request=Drafts,
    example={"messages": [{"body": "one"}, {"body": "two", "priority": -1}]},
    answer=SendResults,
)
