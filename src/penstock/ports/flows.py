"""Protocol of a store's flows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from penstock.domain.flow.flow import Flow, FlowOutcome
from penstock.domain.flow.folding import FlowEdge
from penstock.domain.flow.member import Member, MemberRun, MemberState, RunsOn
from penstock.domain.flow.plan import FlowKey, PlannedMember
from penstock.domain.limits import Limits
from penstock.domain.message.lifecycle import Content, Message
from penstock.domain.queue.queue import Queue


class NewMember(msgspec.Struct, frozen=True):
    """A checked plan, with the id and the queue that it gets."""

    plan: PlannedMember
    id: str
    queue: Queue


class FlowFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which flows to return, newest first."""

    name: str | None = None
    outcome: FlowOutcome | None = None
    is_running: bool = False
    is_failing: bool = False
    created_by: str | None = None
    before: tuple[int, int] | None = None  # cursor: (created_at, flow_no) of the last one seen
    limit: int = 100


class ParentEdge(msgspec.Struct, frozen=True):
    child_no: int
    parent_id: str
    runs_on: RunsOn


class BlockedMessage(msgspec.Struct, frozen=True):
    """A member that is not, or was never, in its queue."""

    member: Member
    message: Message
    content: Content


class FlowStore(Protocol):
    def create(
        self,
        flow_id: str,
        name: str,
        new: Sequence[NewMember],
        *,
        is_open: bool,
        key: FlowKey | None = None,
        created_by: str | None = None,
        limits: Limits,
        now: int,
    ) -> Flow:
        """The flow, or another one that has the key: then nothing is stored.

        Raises InvalidRequest, TooLarge or QueueFull; then nothing is stored, either.
        """
        ...

    def add(self, flow_id: str, new: Sequence[NewMember], *, limits: Limits, now: int) -> Flow:
        """Raises FlowNotFound and WrongState as well."""
        ...

    def find(self, flow_id: str) -> Flow:
        """Raises FlowNotFound."""
        ...

    def id_of_message(self, message_id: str) -> str | None:
        """The id of the flow that the message is a member of."""
        ...

    def page(self, wanted: FlowFilter) -> list[Flow]: ...
    def members(
        self, flow_no: int, *, state: MemberState | None, after_no: int, limit: int
    ) -> list[Member]: ...
    def members_of(self, message_nos: Sequence[int]) -> list[Member]:
        """Members by number, in order."""
        ...

    def member(self, flow: Flow, name_or_id: str) -> Member:
        """Raises MessageNotFound."""
        ...

    def parents(self, members: Sequence[Member]) -> list[ParentEdge]: ...
    def edges(self, members: Sequence[Member]) -> list[FlowEdge]:
        """The edges from the parents of members."""
        ...

    def runs(self, members: Sequence[Member]) -> dict[int, MemberRun]:
        """What is stored of the messages of members, by number."""
        ...

    def created_by(self, members: Sequence[Member]) -> dict[str, list[str]]:
        """The ids of the flows that the handlers of members created, by the id of the member."""
        ...

    def unsent(self, message_id: str) -> BlockedMessage | None:
        """The member with this id, if it has not been sent."""
        ...

    def close(self, flow_id: str, *, now: int) -> Flow: ...
    def cancel(self, flow_id: str, *, reason: str | None, now: int) -> Flow:
        """Keep its blocked members from running; those in queues are left to `cancel_some`."""
        ...

    def cancel_some(self, flow_no: int, *, reason: str | None, limit: int, now: int) -> int:
        """Cancel members that are in their queues; returns how many were found."""
        ...

    def redrive_some(self, flow_no: int, *, after_no: int, limit: int, now: int) -> tuple[int, int]:
        """Redrive dead members, the next ones by number.

        Returns the last number seen (0: there are no more) and how many were redriven.
        """
        ...

    def retry(self, flow_no: int, *, message_nos: Sequence[int] | None, now: int) -> int:
        """Try again to send members that could not be sent; None: all of them.

        Returns how many were sent, or wait for a parent again.
        """
        ...

    def forget(self, *, before_at: int, limit: int) -> int:
        """Remove some of the members of flows that ended before; returns how many were removed."""
        ...
