"""Manual acts of an operator on messages: on one by id, or on many at once."""

from __future__ import annotations

from typing import Annotated, Any

from penstock.api.messages import Acted
from penstock.api.operation import (
    AnswerRecord,
    DurationMs,
    Id,
    InstantOrMs,
    Operation,
    RequestRecord,
    about,
)
from penstock.domain.access.api_key import Role, Scope
from penstock.domain.errors import QueueNotFound, WrongState
from penstock.domain.message.lifecycle import State
from penstock.domain.message.selection import BulkAct


class Reason(RequestRecord):
    reason: Annotated[str | None, about("Why, for the history.")] = None


class End(Reason):
    is_running_ok: Annotated[
        bool, about("Also end a leased message; its lease holder can no longer act on it.")
    ] = False


class Reschedule(RequestRecord):
    due_at: Annotated[
        InstantOrMs | None, about("When it is due: from then on it can be claimed.")
    ] = None
    delay_ms: Annotated[
        DurationMs | None, about("The delay until it is due, in place of `due_at`.")
    ] = None


class Buried(AnswerRecord, frozen=True):
    id: Annotated[Id, about("The id of the message.")]
    state: Annotated[
        State, about("`dead` in its own queue; in a dead-letter queue its state there.")
    ]


class Where(RequestRecord):
    """Selects the messages of the queue that match every field."""

    state: Annotated[State, about("Messages in this state: ready, waiting, leased or dead.")]
    kind: Annotated[str | None, about("Only messages of this kind.")] = None
    tag: Annotated[str | None, about("Only messages with this tag.")] = None
    group: Annotated[str | None, about("Only messages of this group.")] = None
    entity_id: Annotated[str | None, about("Only messages with this `entity_id`.")] = None
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


def _manual(name: str, act: str, summary: str, **more: Any) -> Operation[Any]:
    return Operation(
        name=name,
        method="POST",
        path=f"/v1/messages/{{id}}/{act}",
        summary=summary,
        role=Role.OPERATE,
        scope=Scope.NAMED,
        errors=(WrongState,),
        **more,
    )


RESCHEDULE: Operation[Acted] = Operation(
    name="rescheduleMessage",
    method="PATCH",
    path="/v1/messages/{id}",
    summary="Change when an unclaimed message is due.",
    role=Role.OPERATE,
    scope=Scope.NAMED,
    request=Reschedule,
    example={"due_at": "2031-12-24T18:00:00Z"},
    answer=Acted,
    errors=(WrongState,),
    is_idempotent=True,
)
COMPLETE: Operation[Acted] = _manual(
    "completeByHand",
    "complete",
    "Mark an unclaimed message as done, as an operator.",
    request=Reason,
    example={"reason": "done by telephone"},
    answer=Acted,
)
CANCEL: Operation[Acted] = _manual(
    "cancelByHand",
    "cancel",
    "Cancel a message, as an operator. A leased message needs `is_running_ok`.",
    request=End,
    example={"reason": "the order was withdrawn"},
    answer=Acted,
)
BURY: Operation[Buried] = _manual(
    "buryByHand",
    "bury",
    "Bury a message, as an operator. A leased message needs `is_running_ok`.",
    request=End,
    example={"reason": "no such address"},
    answer=Buried,
)
REDRIVE: Operation[Acted] = _manual(
    "redriveMessage",
    "redrive",
    "Send a dead message back to the queue it died in.",
    answer=Acted,
)
BULK = Operation(
    name="changeMessages",
    method="POST",
    path="/v1/queues/{queue}/messages/bulk",
    summary="Act on many messages of a queue at once, or count them in a dry run.",
    role=Role.OPERATE,
    request=Bulk,
    example={"act": "cancel", "where": {"state": "waiting"}, "is_dry_run": True},
    answer=Changed,
    errors=(QueueNotFound,),
)
