"""Records of flows and their members."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Self

import msgspec

from penstock.api import messages
from penstock.api.messages import EndReason, FinishedAt, Kind, MessageId, QueueOf
from penstock.api.operation import (
    AnswerRecord,
    Cursor,
    DurationMs,
    Id,
    Instant,
    Limit,
    Next,
    QueryRecord,
    RequestRecord,
    ToInstant,
    about,
)
from penstock.domain.flow import flow as domain
from penstock.domain.flow.member import MemberRole, MemberState, RunsOn

MemberName = Annotated[str | None, about("A name that is unique in the flow.")]
RunsOnOf = Annotated[
    RunsOn,
    about(
        "When it may run. `done`: if the parent is done; if it fails, the member is cancelled."
        " `ended`: whatever became of the parent. `failed`: if a parent fails."
    ),
]


class FlowState(StrEnum):
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class After(msgspec.Struct, forbid_unknown_fields=True):
    """An edge of the graph."""

    member: Annotated[str, about("The name or the id of the parent.")]
    on: RunsOnOf = RunsOn.DONE


class NewMember(messages.Draft, kw_only=True):
    """A message of the flow; it is sent as soon as its parents allow."""

    queue: Annotated[str, about("The queue it is sent to.")]
    name: MemberName = None
    after: Annotated[
        tuple[str | After, ...],
        about("Its parents: names or ids, or objects that also say when it may run."),
    ] = ()
    inputs: Annotated[
        dict[str, str | tuple[str, ...]],
        about(
            "Fields of the body that get the results of parents: the name of one,"
            " or several for a list."
        ),
    ] = msgspec.field(default_factory=dict)


class NewFlow(RequestRecord, kw_only=True):
    name: Annotated[str, about("What the flow is called. Names need not be unique.")]
    members: Annotated[list[NewMember], about("Up to 10,000 messages, in any order.")] = (
        msgspec.field(default_factory=list)
    )
    on_success: Annotated[NewMember | None, about("Sent when all members are done.")] = None
    on_failure: Annotated[NewMember | None, about("Sent when the first member has failed.")] = None
    on_finish: Annotated[NewMember | None, about("Sent when all members have ended.")] = None
    is_open: Annotated[
        bool, about("True: it does not end before it is closed, as members may be added.")
    ] = False


class NewMembers(RequestRecord):
    members: Annotated[list[NewMember], about("Up to 10,000 messages, in any order.")]


class Flow(AnswerRecord, frozen=True, omit_defaults=True):
    id: Annotated[Id, about("The id of the flow.")]
    name: Annotated[str, about("What the flow is called.")]
    state: Annotated[FlowState, about("`running` until all members have ended.")]
    created_at: Annotated[Instant, about("When it was created.")]
    total: Annotated[int, about("How many members it has, without callbacks.")]
    remaining: Annotated[int, about("How many of them have not ended.")]
    done: Annotated[int, about("How many are done.")]
    failed: Annotated[int, about("How many are dead or were cancelled.")]
    skipped: Annotated[int, about("How many were not needed.")]
    ended_at: Annotated[Instant | None, about("When its last member ended.")] = None
    is_open: Annotated[bool, about("True while more members may be added.")] = False

    @classmethod
    def of(cls, flow: domain.Flow, instant: ToInstant) -> Self:
        state = FlowState.RUNNING if flow.outcome is None else FlowState(flow.outcome)
        return cls.copy_of(flow, instant, state=state)

    @property
    def progress(self) -> float:
        """The share of members that have ended."""
        return (self.total - self.remaining) / self.total if self.total else 0.0


class CreatedFlow(AnswerRecord, frozen=True):
    flow: Annotated[Flow, about("The flow.")]
    members: Annotated[list[MessageId], about("The ids of the members, in the order given.")]


class FlowMember(AnswerRecord, frozen=True, omit_defaults=True):
    """A member of a flow; fields without a value are left out."""

    id: MessageId
    queue: QueueOf
    state: Annotated[
        MemberState,
        about(
            "`blocked`: it waits for its parents; `released`: it is in its queue;"
            " `skipped`: it was not needed."
        ),
    ]
    name: MemberName = None
    kind: Kind = None
    role: Annotated[MemberRole, about("`member`, or when the flow calls it.")] = MemberRole.MEMBER
    waits_for: Annotated[int, about("How many of its parents have not ended.")] = 0
    reason: EndReason = None
    ended_at: FinishedAt = None
    after: Annotated[tuple[After, ...], about("Its parents, by id.")] = ()


class FlowMembers(AnswerRecord, frozen=True):
    members: Annotated[list[FlowMember], about("The members, in the order they were added.")]
    next: Next


class FlowPage(AnswerRecord, frozen=True):
    flows: Annotated[list[Flow], about("The flows, newest first.")]
    next: Next


class ListFlows(QueryRecord):
    name: Annotated[str | None, about("Only flows of this name.")] = None
    state: Annotated[FlowState | None, about("Only flows in this state.")] = None
    limit: Limit = 100
    cursor: Cursor = None


class WaitForFlow(QueryRecord):
    wait_ms: Annotated[DurationMs, about("How long to wait for the end of the flow.")] = 0


class ListMembers(QueryRecord):
    state: Annotated[MemberState | None, about("Only members in this state.")] = None
    limit: Limit = 100
    cursor: Cursor = None


class CancelFlow(RequestRecord):
    reason: Annotated[str | None, about("Why, for its history.")] = None


class RedriveFlow(RequestRecord):
    member: Annotated[
        str | None, about("Only this member, by name or id; null: all that failed.")
    ] = None


class RedrivenFlow(AnswerRecord, frozen=True):
    redriven: Annotated[int, about("How many members run again.")]
    flow: Annotated[Flow, about("The flow afterwards.")]
