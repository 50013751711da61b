"""Plans of flows are checked, and results are put into bodies as they are."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.errors import InvalidRequest
from penstock.domain.flow import inputs
from penstock.domain.flow.member import MemberRole, RunsOn
from penstock.domain.flow.plan import PlannedMember, check_plan
from penstock.domain.limits import DEFAULT_LIMITS
from tests.factories import a_draft


def planned(name: str | None, *after: str, **fields: object) -> PlannedMember:
    edges = dict.fromkeys(after, RunsOn.DONE)
    return PlannedMember(queue="mail", draft=a_draft(), name=name, after=edges, **fields)  # type: ignore[arg-type]


@given(st.lists(st.lists(st.integers(0, 9), max_size=3), max_size=10), st.randoms())
def test_parents_come_first(parents: list[list[int]], dice: Random) -> None:
    members = [
        planned(f"m{i}", *(f"m{p % i}" for p in some if i)) for i, some in enumerate(parents)
    ]
    dice.shuffle(members)

    ordered = check_plan(members, DEFAULT_LIMITS)

    places = {m.name: i for i, m in enumerate(ordered)}
    assert len(places) == len(members)
    assert all(places[p] < places[m.name] for m in members for p in m.parents)


def test_cycles_are_refused_by_name() -> None:
    members = [planned("a", "c"), planned("b", "a"), planned("c", "b"), planned("d")]

    with pytest.raises(InvalidRequest, match="cycle: 'a', 'b', 'c'"):
        check_plan(members, DEFAULT_LIMITS)


def test_callbacks_have_no_parents() -> None:
    with pytest.raises(InvalidRequest, match="on_finish waits for the flow"):
        check_plan([planned("a"), planned(None, "a", role=MemberRole.ON_FINISH)], DEFAULT_LIMITS)


def test_an_input_is_an_edge_unless_another_is_named() -> None:
    member = planned(None, "a", inputs={"x": "b", "y": ("a", "c")})
    assert member.parents == dict.fromkeys(("b", "a", "c"), RunsOn.DONE)

    lenient = PlannedMember(
        queue="mail", draft=a_draft(), after={"a": RunsOn.ENDED}, inputs={"x": "a"}
    )
    assert lenient.parents == {"a": RunsOn.ENDED}


def test_results_keep_their_digits() -> None:
    results = {1: "9.990", 2: '{"a": [1]}', 3: None}

    assert inputs.fill("null", {"x": 1}, results) == '{"x":9.990}'
    assert inputs.fill('{"x": 1, "y": 2.50}', {"x": (2, 3)}, results) == (
        '{"x":[{"a": [1]},null],"y":2.50}'
    )


@pytest.mark.parametrize("body", ["17", '"text"', "[1]"])
def test_only_objects_take_inputs(body: str) -> None:
    with pytest.raises(InvalidRequest):
        inputs.check_body(body)
