"""When a member may run, and when it never will."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.flow.member import (
    MemberDecision,
    MemberState,
    ParentOutcome,
    Parents,
    RunsOn,
    decide,
    parents_of,
)
from tests.domain.flow.model import FlowModel

D, F, S = ParentOutcome.DONE, ParentOutcome.FAILED, ParentOutcome.SKIPPED
STATES = {D: MemberState.DONE, F: MemberState.DEAD, S: MemberState.SKIPPED}
DECISIONS = {
    MemberState.BLOCKED: MemberDecision.WAIT,
    MemberState.RELEASED: MemberDecision.RUN,
    MemberState.CANCELLED: MemberDecision.CANCEL,
    MemberState.SKIPPED: MemberDecision.SKIP,
}
EDGES = st.lists(st.tuples(st.sampled_from(RunsOn), st.sampled_from([None, D, F, S])), max_size=5)


@pytest.mark.parametrize(
    ("edges", "decision"),
    [
        ([], MemberDecision.RUN),
        ([(RunsOn.DONE, None)], MemberDecision.WAIT),
        ([(RunsOn.DONE, D)], MemberDecision.RUN),
        ([(RunsOn.DONE, F), (RunsOn.DONE, None)], MemberDecision.CANCEL),
        ([(RunsOn.DONE, S), (RunsOn.DONE, None)], MemberDecision.SKIP),
        ([(RunsOn.ENDED, F), (RunsOn.ENDED, S)], MemberDecision.RUN),
        ([(RunsOn.FAILED, F), (RunsOn.FAILED, None)], MemberDecision.WAIT),
        ([(RunsOn.FAILED, F), (RunsOn.FAILED, D)], MemberDecision.RUN),
        ([(RunsOn.FAILED, D), (RunsOn.FAILED, S)], MemberDecision.SKIP),
        ([(RunsOn.FAILED, F), (RunsOn.DONE, F)], MemberDecision.CANCEL),
    ],
)
def test_the_decisions(
    edges: list[tuple[RunsOn, ParentOutcome | None]], decision: MemberDecision
) -> None:
    assert decide(parents_of(edges)) is decision


@given(EDGES)
def test_a_decision_follows_from_the_edges(
    edges: list[tuple[RunsOn, ParentOutcome | None]],
) -> None:
    model = FlowModel()
    model.add({f"p{i}": {} for i in range(len(edges))})
    model.end({f"p{i}": STATES[o] for i, (_, o) in enumerate(edges) if o is not None})
    model.add({"child": {f"p{i}": on for i, (on, _) in enumerate(edges)}})

    assert decide(parents_of(edges)) is DECISIONS[model.states["child"]]


@given(st.lists(st.tuples(st.sampled_from(RunsOn), st.sampled_from([D, F, S])), max_size=4))
def test_the_order_in_which_parents_end_makes_no_difference_to_the_numbers(
    edges: list[tuple[RunsOn, ParentOutcome]],
) -> None:
    handles = sum(on is RunsOn.FAILED for on, _ in edges)
    results = set()
    for order in permutations(edges):
        parents = Parents(waits_for=len(edges), handles=handles)
        for on, outcome in order:
            parents = parents.after(on, outcome)
        results.add(tuple(getattr(parents, name) for name in Parents.__struct_fields__))

    assert len(results) == 1
    assert decide(Parents(*results.pop())) is decide(parents_of(edges))
