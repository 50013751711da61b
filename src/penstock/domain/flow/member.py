"""Members of flows: when a message that waits for others may run, and when it never will.

                 all parents as its edges want them
    BLOCKED ───────────────────────────────────────▶ RELEASED ──────▶ DONE
       │  ▲                                             │    ▲
       │  │ a parent is redriven                        │    │ redrive
       │  └──────────────┐                              ▼    │
       ├── a parent failed ──▶ CANCELLED ◀───────────── DEAD
       └── not needed ───────▶ SKIPPED

A blocked member is not in its queue: it enters the queue when it is released, as if it were sent at
that moment.  From then on the lifecycle of messages applies, and the member only notes the ending.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum, auto

import msgspec
from msgspec.structs import replace

from penstock.domain.message.lifecycle import State

# Reasons of members that end without having been released.
PARENT_FAILED = "parent_failed"
NOT_NEEDED = "not_needed"
FLOW_CANCELLED = "flow_cancelled"
INPUTS_TOO_LARGE = "inputs_too_large"
INPUTS_UNFIT = "inputs_unfit"
QUEUE_REMOVED = "queue_removed"

# A redrive of the flow tries these again; the first two come back with their parents.
BY_PARENTS = frozenset({PARENT_FAILED, NOT_NEEDED})
NOT_SENT = frozenset({INPUTS_TOO_LARGE, INPUTS_UNFIT, QUEUE_REMOVED})


class MemberRole(StrEnum):
    MEMBER = "member"
    ON_SUCCESS = "on_success"
    ON_FAILURE = "on_failure"
    ON_FINISH = "on_finish"


class MemberState(StrEnum):
    BLOCKED = "blocked"  # waits for its parents, or for the flow
    RELEASED = "released"  # in its queue
    DONE = "done"
    DEAD = "dead"  # can be redriven
    CANCELLED = "cancelled"
    SKIPPED = "skipped"  # not needed: neither done nor failed


class RunsOn(StrEnum):
    """What a member wants of one parent."""

    DONE = "done"
    ENDED = "ended"  # whatever became of it
    FAILED = "failed"  # the member handles the failure of at least one of such parents


class ParentOutcome(StrEnum):
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"


class MemberDecision(StrEnum):
    WAIT = auto()
    RUN = auto()
    CANCEL = auto()
    SKIP = auto()


OUTCOMES = {
    MemberState.DONE: ParentOutcome.DONE,
    MemberState.DEAD: ParentOutcome.FAILED,
    MemberState.CANCELLED: ParentOutcome.FAILED,
    MemberState.SKIPPED: ParentOutcome.SKIPPED,
}
ENDINGS = {
    State.DONE: MemberState.DONE,
    State.DEAD: MemberState.DEAD,
    State.CANCELLED: MemberState.CANCELLED,
}


class Parents(msgspec.Struct, frozen=True, gc=False):
    """What is known of a member's parents, in numbers: a member may have thousands."""

    waits_for: int = 0  # parents that have not ended
    handles: int = 0  # parents whose failure it handles
    failures: int = 0  # those of them that failed
    broken: int = 0  # parents that had to be done and failed
    unneeded: int = 0  # parents that had to be done and were skipped

    def after(self, runs_on: RunsOn, outcome: ParentOutcome) -> Parents:
        """One more parent has ended."""
        is_failure = outcome is ParentOutcome.FAILED
        must_be_done = runs_on is RunsOn.DONE
        return Parents(
            self.waits_for - 1,
            self.handles,
            self.failures + (runs_on is RunsOn.FAILED and is_failure),
            self.broken + (must_be_done and is_failure),
            self.unneeded + (must_be_done and outcome is ParentOutcome.SKIPPED),
        )


def parents_of(edges: Iterable[tuple[RunsOn, ParentOutcome | None]]) -> Parents:
    """The same from scratch."""
    edges = list(edges)
    handles = sum(runs_on is RunsOn.FAILED for runs_on, _ in edges)
    parents = Parents(waits_for=len(edges), handles=handles)
    for runs_on, outcome in edges:
        if outcome is not None:
            parents = parents.after(runs_on, outcome)
    return parents


def decide(parents: Parents) -> MemberDecision:
    """A failed parent that had to be done decides at once; everything else needs all parents."""
    if parents.broken:
        return MemberDecision.CANCEL
    if parents.unneeded:
        return MemberDecision.SKIP
    if parents.waits_for:
        return MemberDecision.WAIT
    if parents.handles and not parents.failures:
        return MemberDecision.SKIP
    return MemberDecision.RUN


class Member(msgspec.Struct, frozen=True, gc=False):
    """A message of a flow.  Its draft, inputs and result are stored beside it."""

    message_no: int
    flow_no: int
    id: str
    name: str | None
    kind: str | None
    queue_no: int
    role: MemberRole = MemberRole.MEMBER
    state: MemberState = MemberState.BLOCKED
    waits_for: int = 0
    handles: int = 0
    failures: int = 0
    reason: str | None = None
    ended_at: int | None = None

    @property
    def parents(self) -> Parents:
        """Of a blocked member: no parent has decided against it yet."""
        return Parents(self.waits_for, self.handles, self.failures)

    @property
    def is_blocked(self) -> bool:
        return self.state is MemberState.BLOCKED

    @property
    def is_callback(self) -> bool:
        return self.role is not MemberRole.MEMBER

    def counted(self, parents: Parents) -> Member:
        """The same member with these numbers of parents."""
        return replace(
            self,
            waits_for=parents.waits_for,
            handles=parents.handles,
            failures=parents.failures,
        )

    def ended(self, state: MemberState, *, now: int, reason: str | None = None) -> Member:
        return replace(self, state=state, reason=reason, ended_at=now)

    def reopened(self, state: MemberState) -> Member:
        return replace(self, state=state, reason=None, ended_at=None)


class MemberRun(msgspec.Struct, frozen=True, gc=False):
    """The message of a member since it was released: in its queue, or when it had ended."""

    message_no: int
    message_state: State | None  # of its message, until that has ended
    sent_at: int
    due_at: int | None  # while its message waits
    first_leased_at: int | None
    leased_at: int | None
    attempts: int


def refused(member: Member, decision: MemberDecision, *, now: int) -> Member:
    """A blocked member that will not run."""
    if decision is MemberDecision.CANCEL:
        return member.ended(MemberState.CANCELLED, now=now, reason=PARENT_FAILED)
    return member.ended(MemberState.SKIPPED, now=now, reason=NOT_NEEDED)


def comes_back(member: Member) -> bool:
    """Whether its state is decided again, now that one of its parents has come back."""
    is_refused = member.state in (MemberState.CANCELLED, MemberState.SKIPPED)
    return is_refused and member.reason in BY_PARENTS
