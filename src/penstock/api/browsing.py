"""Look through messages: those of a queue, and the errors of dead ones in groups."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from penstock.api.manual_acts import Changed
from penstock.api.messages import Message, Preview
from penstock.api.operation import (
    AnswerRecord,
    Cursor,
    Id,
    Instant,
    InstantOrText,
    Limit,
    Next,
    OfGroup,
    OfKind,
    QueryRecord,
    QueueName,
    RequestRecord,
    WithEntityId,
    WithTag,
    about,
    filtered,
    get,
)
from penstock.domain.errors import QueueNotFound


class Page(AnswerRecord, frozen=True):
    messages: Annotated[list[Message], about("The messages.")]
    next: Next


class Browse(QueryRecord):
    state: Annotated[
        str,
        Meta(
            description="The state of the messages.",
            examples=["waiting"],
            extra_json_schema={"enum": ["ready", "waiting", "leased", "dead"]},
        ),
    ] = "ready"
    kind: OfKind = None
    tag: WithTag = None
    group: OfGroup = None
    entity_id: WithEntityId = None
    sent_from: Annotated[
        InstantOrText | None, about("Only messages sent at this instant or later.")
    ] = None
    sent_before: Annotated[
        InstantOrText | None, about("Only messages sent before this instant.")
    ] = None
    preview: Preview = None
    limit: Limit = 100
    cursor: Cursor = None


_QUEUE = Meta(description="Only dead messages in this queue.", examples=["mail"])


class ErrorGroup(AnswerRecord, frozen=True):
    """Dead messages with the same exception from the same place."""

    id: Annotated[
        str,
        Meta(
            description="The id of the group: the same for this exception and place at all times.",
            extra_json_schema={"pattern": "^[0-9a-f]{16}$"},
        ),
    ]
    error: Annotated[
        str,
        about("The exception's type; for an error of another form its text, without numbers."),
    ]
    place: Annotated[
        str | None, about("The file and line of the application that raised it. Null if unknown.")
    ]
    messages: Annotated[int, about("How many dead messages have it.")]
    first_at: Annotated[Instant, about("When the earliest of them was last claimed, or sent.")]
    last_at: Annotated[Instant, about("When the latest of them was last claimed, or sent.")]
    queues: Annotated[dict[str, int], about("How many of them are in each queue.")]
    kinds: Annotated[list[str], about("Their kinds, by name.")]
    sample_id: Annotated[Id, about("The id of the latest of them.")]
    sample_line: Annotated[str, about("Its error in one line.")]
    sample_error: Annotated[str, about("Its error as the worker reported it.")]


class ErrorGroups(AnswerRecord, frozen=True):
    groups: Annotated[list[ErrorGroup], about("The groups, those with the most messages first.")]
    is_cut: Annotated[
        bool,
        about("True if not all are counted, because at most 10,000 messages are examined."),
    ]


class ListErrors(QueryRecord):
    queue: Annotated[QueueName | None, _QUEUE] = None


class RedriveErrors(RequestRecord):
    error: Annotated[str, about("The id of the group.")]
    queue: Annotated[QueueName | None, _QUEUE] = None
    is_dry_run: Annotated[bool, about("Count the messages without changing them.")] = False


BROWSE = get(
    "browseMessages",
    "/v1/queues/{queue}/messages",
    "List the messages of a queue in one state, without claiming them.",
    Page,
    query=Browse,
)
LIST_ERRORS = filtered.get(
    "listErrors",
    "/v1/errors",
    "Group the errors of dead messages by exception and place.",
    ErrorGroups,
    query=ListErrors,
    errors=(QueueNotFound,),
)
REDRIVE_ERRORS = filtered.post(
    "redriveErrors",
    "/v1/errors/redrive",
    "Send the dead messages of a group of errors back to the queues they died in.",
    Changed,
    request=RedriveErrors,
    errors=(QueueNotFound,),
    example={"error": "0123456789abcdef", "is_dry_run": True},
)
