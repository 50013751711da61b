"""A flow as a whole: what became of its members, how it ends, and when its callbacks run."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

import msgspec
from msgspec.structs import replace

from penstock.domain.errors import WrongState
from penstock.domain.flow.member import MemberDecision, MemberRole, MemberState

FLOW_ENDED = "flow_ended"  # a kind of fact, about the flow's id


class FlowOutcome(StrEnum):
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Flow(msgspec.Struct, frozen=True):
    flow_no: int
    id: str
    name: str
    queues: tuple[str, ...]  # of all members, for the rights of callers
    created_at: int
    ended_at: int | None = None
    is_open: bool = False  # it does not end, because more members may follow
    is_cancelled: bool = False
    total: int = 0  # members, without callbacks
    remaining: int = 0
    done: int = 0
    failed: int = 0
    skipped: int = 0
    outcome: FlowOutcome | None = None
    created_by: str | None = None  # the message whose handler created it

    @property
    def has_ended(self) -> bool:
        return self.ended_at is not None


_COUNTS = {
    MemberState.BLOCKED: "remaining",
    MemberState.RELEASED: "remaining",
    MemberState.DONE: "done",
    MemberState.DEAD: "failed",
    MemberState.CANCELLED: "failed",
    MemberState.SKIPPED: "skipped",
}


def ending_of(flow: Flow) -> dict[str, object]:
    """The data of the fact FLOW_ENDED: members that were never sent are in no history."""
    return {
        "flow_no": flow.flow_no,
        "name": flow.name,
        "outcome": flow.outcome,
        "created_at": flow.created_at,
        "total": flow.total,
        "done": flow.done,
        "failed": flow.failed,
        "skipped": flow.skipped,
    }


def added(flow: Flow, count: int) -> Flow:
    """With `count` more members.  Raises WrongState if it has ended or was cancelled."""
    if flow.is_cancelled:
        raise WrongState(f"flow {flow.id} was cancelled and takes no more members")
    if flow.has_ended:
        raise WrongState(f"flow {flow.id} has ended and takes no more members")
    return replace(flow, total=flow.total + count, remaining=flow.remaining + count)


def with_queues(flow: Flow, names: Iterable[str]) -> Flow:
    return replace(flow, queues=tuple(sorted({*flow.queues, *names})))


def moved(flow: Flow, before: MemberState, after: MemberState, count: int = 1) -> Flow:
    """`count` members have changed their state."""
    left, joined = _COUNTS[before], _COUNTS[after]
    if left == joined:
        return flow
    return replace(
        flow, **{left: getattr(flow, left) - count, joined: getattr(flow, joined) + count}
    )


def settled(flow: Flow, *, now: int) -> Flow:
    """Ended if no member is left, or open again if one has come back."""
    if flow.remaining or flow.is_open:
        return replace(flow, ended_at=None, outcome=None)
    if flow.has_ended:
        return replace(flow, outcome=_outcome(flow))
    return replace(flow, ended_at=now, outcome=_outcome(flow))


def closed(flow: Flow, *, now: int) -> Flow:
    return settled(replace(flow, is_open=False), now=now)


def cancelled(flow: Flow, *, now: int) -> Flow:
    """No member of it starts any more.  Raises WrongState if it has ended."""
    if flow.has_ended and not flow.is_cancelled:
        raise WrongState(f"flow {flow.id} has ended: it is {flow.outcome}")
    return settled(replace(flow, is_cancelled=True, is_open=False), now=now)


def may_call_back(before: Flow | None, after: Flow) -> bool:
    """Whether callbacks have to be looked at: most endings of members do not concern them."""
    if before is None:
        return True
    has_turned = before.has_ended is not after.has_ended
    return has_turned or (after.failed > 0 and not before.failed) or after.is_cancelled


def decide_callback(role: MemberRole, flow: Flow) -> MemberDecision:
    """`on_failure` runs at the first failure, the others when the flow ends."""
    match role:
        case MemberRole.ON_FAILURE if flow.is_cancelled:
            return MemberDecision.SKIP
        case MemberRole.ON_FAILURE if flow.failed:
            return MemberDecision.RUN
        case MemberRole.ON_FINISH if flow.has_ended:
            return MemberDecision.RUN
        case MemberRole.ON_SUCCESS if flow.outcome is FlowOutcome.DONE:
            return MemberDecision.RUN
    return MemberDecision.SKIP if flow.has_ended else MemberDecision.WAIT


def _outcome(flow: Flow) -> FlowOutcome:
    if flow.is_cancelled:
        return FlowOutcome.CANCELLED
    return FlowOutcome.FAILED if flow.failed else FlowOutcome.DONE
