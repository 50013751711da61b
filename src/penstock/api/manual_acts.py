"""Acts of an operator on messages: one by id, or many at once."""

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
    due_at: Annotated[InstantOrMs | None, about("When it may be claimed.")] = None
    delay_ms: Annotated[DurationMs | None, about("The same as due_at, counted from now.")] = None


class Buried(AnswerRecord, frozen=True):
    id: Annotated[Id, about("The id of the message.")]
    state: Annotated[State, about("Dead, in its own queue or in the dead-letter queue.")]


class Where(RequestRecord):
    """Which messages of the queue: those that match every field."""

    state: Annotated[State, about("Messages in this state: ready, waiting, leased or dead.")]
    kind: Annotated[str | None, about("Only messages of this kind.")] = None
    tag: Annotated[str | None, about("Only messages with this tag.")] = None
    group: Annotated[str | None, about("Only messages of this group.")] = None
    entity_id: Annotated[str | None, about("Only messages about this.")] = None
    sent_from: Annotated[
        InstantOrMs | None, about("Only messages sent at this instant or later.")
    ] = None
    sent_before: Annotated[InstantOrMs | None, about("Only messages sent before this instant.")] = (
        None
    )


class Bulk(RequestRecord):
    act: Annotated[BulkAct, about("What to do with the messages.")]
    ids: Annotated[list[str] | None, about("Up to 1,000 messages by id; null: those of where.")] = (
        None
    )
    where: Annotated[Where | None, about("The messages by their fields; null: those of ids.")] = (
        None
    )
    reason: Annotated[str | None, about("For complete, cancel and bury: why.")] = None
    due_at: Annotated[InstantOrMs | None, about("For reschedule: when they may be claimed.")] = None
    delay_ms: Annotated[
        DurationMs | None, about("For reschedule: the same as due_at, counted from now.")
    ] = None
    is_dry_run: Annotated[bool, about("Count the messages without changing them.")] = False
    is_running_ok: Annotated[
        bool, about("For cancel and bury: also end leased messages, fencing their lease holders.")
    ] = False


class Changed(AnswerRecord, frozen=True):
    matched: Annotated[int, about("How many messages of the queue were meant.")]
    changed: Annotated[int, about("How many were changed.")]
    refused: Annotated[
        int, about("How many were not, because they are gone or in a state that does not allow it.")
    ]
    is_cut: Annotated[
        bool, about("More than 100,000 match; send the request again for the others.")
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
    summary="Give a message in line another due date.",
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
    "It is done, an operator says; only while nobody holds it.",
    request=Reason,
    example={"reason": "done by telephone"},
    answer=Acted,
)
CANCEL: Operation[Acted] = _manual(
    "cancelByHand",
    "cancel",
    "Cancel it; one that is leased only with is_running_ok.",
    request=End,
    example={"reason": "the order was withdrawn"},
    answer=Acted,
)
BURY: Operation[Buried] = _manual(
    "buryByHand",
    "bury",
    "Put it among the dead ones; one that is leased only with is_running_ok.",
    request=End,
    example={"reason": "no such address"},
    answer=Buried,
)
REDRIVE: Operation[Acted] = _manual(
    "redriveMessage",
    "redrive",
    "Bring a dead message back to the queue it died in.",
    answer=Acted,
)
BULK = Operation(
    name="changeMessages",
    method="POST",
    path="/v1/queues/{queue}/messages/bulk",
    summary="Act by hand on many messages of a queue, or count them first.",
    role=Role.OPERATE,
    request=Bulk,
    example={"act": "cancel", "where": {"state": "waiting"}, "is_dry_run": True},
    answer=Changed,
    errors=(QueueNotFound,),
)
