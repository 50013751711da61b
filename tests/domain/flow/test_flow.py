"""How a flow ends, and when its callbacks run."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from penstock.domain.errors import WrongState
from penstock.domain.flow import flow as flows
from penstock.domain.flow.flow import Flow, FlowOutcome
from penstock.domain.flow.member import MemberDecision, MemberRole, MemberState
from tests.clocks import NOON

SUCCESS, FAILURE, FINISH = list(MemberRole)[1:]
RUN, SKIP, WAIT = MemberDecision.RUN, MemberDecision.SKIP, MemberDecision.WAIT


def a_flow(count: int = 2, **fields: object) -> Flow:
    flow = Flow(flow_no=1, id="f", name="nightly", queues=(), created_at=NOON)
    return replace(flows.added(flow, count), **fields)


def after(flow: Flow, *states: MemberState) -> Flow:
    for state in states:
        flow = flows.moved(flow, MemberState.RELEASED, state)
    return flows.settled(flow, now=NOON + 1)


def decisions(flow: Flow) -> tuple[MemberDecision, ...]:
    return tuple(flows.decide_callback(role, flow) for role in (SUCCESS, FAILURE, FINISH))


def test_a_flow_is_done_when_no_member_has_failed() -> None:
    running = after(a_flow(), MemberState.DONE)
    done = after(running, MemberState.SKIPPED)

    assert (running.outcome, running.ended_at) == (None, None)
    assert decisions(running) == (WAIT, WAIT, WAIT)
    assert (done.outcome, done.ended_at) == (FlowOutcome.DONE, NOON + 1)
    assert decisions(done) == (RUN, SKIP, RUN)


def test_on_failure_runs_at_the_first_failure() -> None:
    running = after(a_flow(), MemberState.DEAD)
    failed = after(running, MemberState.DONE)

    assert decisions(running) == (WAIT, RUN, WAIT)
    assert failed.outcome is FlowOutcome.FAILED
    assert decisions(failed) == (SKIP, RUN, RUN)


def test_an_open_flow_waits_for_its_end() -> None:
    flow = after(a_flow(is_open=True), MemberState.DONE, MemberState.DONE)

    assert flow.outcome is None
    assert flows.closed(flow, now=NOON).outcome is FlowOutcome.DONE


def test_a_flow_without_members_ends_when_it_is_closed() -> None:
    assert flows.settled(a_flow(0), now=NOON).outcome is FlowOutcome.DONE


def test_a_redriven_flow_runs_again_and_keeps_its_first_end_until_then() -> None:
    failed = after(a_flow(1), MemberState.DEAD)
    again = flows.settled(flows.moved(failed, MemberState.DEAD, MemberState.RELEASED), now=NOON + 2)

    assert flows.settled(failed, now=NOON + 9).ended_at == NOON + 1
    assert (again.outcome, again.ended_at, again.failed) == (None, None, 0)


def test_a_cancelled_flow_skips_all_callbacks_but_on_finish() -> None:
    running = flows.cancelled(a_flow(), now=NOON)
    ended = after(running, MemberState.CANCELLED, MemberState.DONE)

    assert decisions(running) == (WAIT, SKIP, WAIT)
    assert ended.outcome is FlowOutcome.CANCELLED
    assert decisions(ended) == (SKIP, SKIP, RUN)


def test_what_an_ended_or_cancelled_flow_refuses() -> None:
    done = after(a_flow(1), MemberState.DONE)
    with pytest.raises(WrongState, match="has ended"):
        flows.added(done, 1)
    with pytest.raises(WrongState, match="it is done"):
        flows.cancelled(done, now=NOON)
    with pytest.raises(WrongState, match="was cancelled"):
        flows.added(flows.cancelled(a_flow(), now=NOON), 1)
