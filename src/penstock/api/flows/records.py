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
from penstock.domain.limits import MINUTE
from penstock.domain.message.lifecycle import State as MessageState

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
    dedup_key: Annotated[
        str | None,
        about(
            "Creating a second flow with the same name and key returns the first, until that has"
            " ended, and for `dedup_window_ms` after its creation."
        ),
    ] = None
    dedup_window_ms: Annotated[
        DurationMs, about("How long the key is taken at least, also if the flow has ended.")
    ] = 5 * MINUTE
    created_by: Annotated[
        str | None,
        about("The id of the message whose handler creates it; the client library sets it."),
    ] = None


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
    created_by: Annotated[str | None, about("The id of the message whose handler created it.")] = (
        None
    )

    @classmethod
    def of(cls, flow: domain.Flow, instant: ToInstant) -> Self:
        state = FlowState.RUNNING if flow.outcome is None else FlowState(flow.outcome)
        return cls.copy_of(flow, instant, state=state)

    @property
    def progress(self) -> float:
        """The share of members that have ended."""
        return (self.total - self.remaining) / self.total if self.total else 0.0


class CreatedFlow(AnswerRecord, frozen=True, omit_defaults=True):
    flow: Annotated[Flow, about("The flow.")]
    members: Annotated[
        list[MessageId],
        about(
            "The ids of the members, in the order given; of a duplicate those of the first flow, or"
            " none if it was created with other members."
        ),
    ]
    is_duplicate: Annotated[
        bool, about("True: `flow` is an earlier one with the same `dedup_key`.")
    ] = False


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
    message_state: Annotated[
        MessageState | None,
        about("The state of its message while it is `released`: ready, waiting or leased."),
    ] = None
    sent_at: Annotated[Instant | None, about("When it entered its queue.")] = None
    due_at: Annotated[Instant | None, about("When its message is due, while that is waiting.")] = (
        None
    )
    first_leased_at: Annotated[Instant | None, about("When its first attempt began.")] = None
    leased_at: Annotated[Instant | None, about("When its last attempt began.")] = None
    attempts: Annotated[int, about("How many attempts have begun.")] = 0
    created: Annotated[tuple[Id, ...], about("The flows that its handler created.")] = ()


class FlowNode(AnswerRecord, frozen=True, omit_defaults=True):
    """A member in the graph of its flow, or several members that are alike."""

    member: Annotated[
        FlowMember,
        about(
            "The member, or the first of those that are alike. `after` has its parents in the"
            " graph: the ids of the members of other nodes."
        ),
    ]
    layer: Annotated[int, about("The length of the longest path to it: 0 without parents.")]
    count: Annotated[int, about("How many members it stands for.")] = 1
    states: Annotated[
        dict[MemberState, int], about("How many of them are in each state, if it is several.")
    ] = msgspec.field(default_factory=dict)


class FlowGraph(AnswerRecord, frozen=True):
    flow: Annotated[Flow, about("The flow.")]
    nodes: Annotated[list[FlowNode], about("Parents first, callbacks last.")]
    is_cut: Annotated[bool, about("True: there are more nodes, behind those that are shown.")]


class FlowMembers(AnswerRecord, frozen=True):
    members: Annotated[list[FlowMember], about("The members, in the order they were added.")]
    next: Next


class FlowPage(AnswerRecord, frozen=True):
    flows: Annotated[list[Flow], about("The flows, newest first.")]
    next: Next


class ListFlows(QueryRecord):
    name: Annotated[str | None, about("Only flows of this name.")] = None
    state: Annotated[FlowState | None, about("Only flows in this state.")] = None
    is_failing: Annotated[
        bool, about("Only flows with failed members that were not cancelled, running or ended.")
    ] = False
    created_by: Annotated[
        str | None, about("Only flows that the handler of this message created.")
    ] = None
    limit: Limit = 100
    cursor: Cursor = None


class WaitForFlow(QueryRecord):
    wait_ms: Annotated[DurationMs, about("How long to wait for the end of the flow.")] = 0


class ListMembers(QueryRecord):
    state: Annotated[MemberState | None, about("Only members in this state.")] = None
    like: Annotated[
        str | None,
        about(
            "Only members that are alike, as those of a node of the graph: the name or the id of"
            " one of them."
        ),
    ] = None
    limit: Limit = 100
    cursor: Cursor = None


class ShowGraph(QueryRecord):
    fold: Annotated[
        int,
        msgspec.Meta(
            description="More members than this that are alike become one node: of the same role,"
            " queue and kind, with parents that are alike.",
            ge=1,
            le=1_000,
        ),
    ] = 10
    limit: Limit = 1_000


class CancelFlow(RequestRecord):
    reason: Annotated[str | None, about("Why, for its history.")] = None


class RedriveFlow(RequestRecord):
    member: Annotated[
        str | None, about("Only this member, by name or id; null: all that failed.")
    ] = None


class RedrivenFlow(AnswerRecord, frozen=True):
    redriven: Annotated[int, about("How many members run again.")]
    flow: Annotated[Flow, about("The flow afterwards.")]
