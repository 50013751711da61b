"""Manual acts of an operator on messages: on one by id, or on many at once."""

from __future__ import annotations

from typing import Annotated, Any

from penstock.api.messages import (
    Acted,
    DelayMs,
    MessageId,
    NewDueAt,
)
from penstock.api.operation import (
    Answer,
    AnswerRecord,
    DurationMs,
    InstantOrMs,
    OfGroup,
    OfKind,
    Operation,
    RequestRecord,
    WithEntityId,
    WithTag,
    about,
    named,
    post,
)
from penstock.domain.errors import WrongState
from penstock.domain.message.lifecycle import State
from penstock.domain.message.selection import BulkAct


class Reason(RequestRecord):
    reason: Annotated[str | None, about("Why, for the history.")] = None


class End(Reason):
    is_running_ok: Annotated[
        bool, about("Also end a leased message; its lease holder can no longer act on it.")
    ] = False


class Reschedule(RequestRecord):
    due_at: NewDueAt = None
    delay_ms: DelayMs = None


class Buried(AnswerRecord, frozen=True):
    id: MessageId
    state: Annotated[
        State, about("`dead` in its own queue; in a dead-letter queue its state there.")
    ]


class Where(RequestRecord):
    """Selects the messages of the queue that match every field."""

    state: Annotated[State, about("Messages in this state: ready, waiting, leased or dead.")]
    kind: OfKind = None
    tag: WithTag = None
    group: OfGroup = None
    entity_id: WithEntityId = None
    sent_from: Annotated[
        InstantOrMs | None, about("Only messages sent at this instant or later.")
    ] = None
    sent_before: Annotated[InstantOrMs | None, about("Only messages sent before this instant.")] = (
        None
    )


class Bulk(RequestRecord):
    act: Annotated[BulkAct, about("What to do with the messages.")]
    ids: Annotated[
        list[str] | None, about("The messages by id, at most 1,000. Give `ids` or `where`.")
    ] = None
    where: Annotated[
        Where | None, about("The messages by their fields. Give `ids` or `where`.")
    ] = None
    reason: Annotated[str | None, about("For complete, cancel and bury: why.")] = None
    due_at: Annotated[InstantOrMs | None, about("For reschedule: when they become due.")] = None
    delay_ms: Annotated[
        DurationMs | None,
        about("For reschedule: the delay until they are due, in place of `due_at`."),
    ] = None
    is_dry_run: Annotated[bool, about("Count the messages without changing them.")] = False
    is_running_ok: Annotated[
        bool, about("For cancel and bury: also end leased messages, fencing their lease holders.")
    ] = False


class Changed(AnswerRecord, frozen=True):
    matched: Annotated[int, about("How many messages matched.")]
    changed: Annotated[int, about("How many were changed.")]
    refused: Annotated[
        int, about("How many were not changed because they are gone or in the wrong state.")
    ]
    is_cut: Annotated[
        bool, about("True if more than 100,000 messages match. Repeat the request for the others.")
    ]


def _manual(
    act: str, summary: str, answer: type[Answer], example: object = None, **more: Any
) -> Operation[Answer]:
    """An act on one message by id; `example` is a request that works."""
    return named.post(
        more.pop("name", f"{act}ByHand"),
        f"/v1/messages/{{id}}/{act}",
        summary,
        answer,
        example=example,
        errors=(WrongState,),
        **more,
    )


RESCHEDULE = named.patch(
    "rescheduleMessage",
    "/v1/messages/{id}",
    "Change when an unclaimed message is due.",
    Acted,
    request=Reschedule,
    example={"due_at": "2031-12-24T18:00:00Z"},
    errors=(WrongState,),
)
COMPLETE = _manual(
    "complete",
    "Mark an unclaimed message as done, as an operator.",
    Acted,
    {"reason": "done by telephone"},
    request=Reason,
)
CANCEL = _manual(
    "cancel",
    "Cancel a message, as an operator. A leased message needs `is_running_ok`.",
    Acted,
    {"reason": "the order was withdrawn"},
    request=End,
)
BURY = _manual(
    "bury",
    "Bury a message, as an operator. A leased message needs `is_running_ok`.",
    Buried,
    {"reason": "no such address"},
    request=End,
)
REDRIVE = _manual(
    "redrive",
    "Send a dead message back to the queue it died in.",
    Acted,
    name="redriveMessage",
)
BULK = post(
    "changeMessages",
    "/v1/queues/{queue}/messages/bulk",
    "Act on many messages of a queue at once, or count them in a dry run.",
    Changed,
    request=Bulk,
    example={"act": "cancel", "where": {"state": "waiting"}, "is_dry_run": True},
)
