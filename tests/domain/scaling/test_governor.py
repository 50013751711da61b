"""A recommendation after the limits of its fleet and the needs of other fleets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.scaling.governor import (
    Bound,
    FleetNeed,
    GovernedChange,
    fleet_to_shrink,
    govern,
)


def need(
    fleet: str = "other",
    *,
    total: int | None,
    least: int = 0,
    desired: int | None = None,
    is_excused: bool = False,
) -> FleetNeed:
    return FleetNeed(fleet=fleet, min=least, total=total, desired=desired, is_excused=is_excused)


SERVED = need(total=2, least=2)
LACKING = need(total=1, least=2)


def test_a_fleet_below_its_minimum_is_raised_to_it_even_if_others_are_below_theirs() -> None:
    governed = govern(1, total=0, least=3, most=10, others=[LACKING])

    assert governed == GovernedChange(3, Bound.BELOW_MINIMUM)


def test_more_are_allowed_while_the_others_have_their_minimum() -> None:
    assert govern(4, total=1, least=0, most=10, others=[SERVED]) == GovernedChange(4)


def test_more_while_above_the_maximum_become_fewer_by_the_excess() -> None:
    governed = govern(5, total=150, least=0, most=10, others=[SERVED])

    assert governed == GovernedChange(-140, Bound.ABOVE_MAXIMUM)


def test_more_are_limited_by_the_maximum() -> None:
    assert govern(5, total=8, least=0, most=10) == GovernedChange(2, Bound.AT_MAXIMUM)


def test_fewer_are_allowed() -> None:
    assert govern(-3, total=5, least=1, most=10) == GovernedChange(-3)


def test_fewer_at_the_minimum_are_none() -> None:
    assert govern(-3, total=2, least=2, most=10) == GovernedChange(0, Bound.AT_MINIMUM)


def test_fewer_go_no_further_than_the_minimum() -> None:
    assert govern(-5, total=6, least=2, most=10) == GovernedChange(-4, Bound.AT_MINIMUM)


def test_fewer_below_the_minimum_become_more() -> None:
    assert govern(-1, total=1, least=3, most=10) == GovernedChange(2, Bound.BELOW_MINIMUM)


def test_no_change_stays_none() -> None:
    assert govern(0, total=5, least=0, most=10, others=[LACKING]) == GovernedChange(0)


def test_no_change_below_the_minimum_becomes_more() -> None:
    assert govern(0, total=1, least=3, most=10) == GovernedChange(2, Bound.BELOW_MINIMUM)


def test_no_change_above_the_maximum_becomes_fewer() -> None:
    assert govern(0, total=12, least=3, most=10) == GovernedChange(-2, Bound.ABOVE_MAXIMUM)


def test_a_fleet_that_asks_shrinks_by_tenths_while_another_is_below_its_minimum() -> None:
    totals, total = [], 100
    while (governed := govern(5, total=total, least=2, most=200, others=[LACKING])).change:
        assert governed.bound is Bound.OTHERS_FIRST
        total += governed.change
        totals.append(total)

    assert totals[:3] == [90, 81, 72]
    assert totals[-1] == 2


def test_at_its_minimum_it_gets_nothing_while_another_is_below() -> None:
    governed = govern(5, total=2, least=2, most=10, others=[SERVED, LACKING])

    assert governed == GovernedChange(0, Bound.OTHERS_FIRST)


def test_others_that_were_stopped_by_pressure_do_not_hold_it_up() -> None:
    stopped = need(total=0, least=2, is_excused=True)

    assert govern(5, total=8, least=0, most=10, others=[stopped]).change == 2


def test_others_of_which_nothing_is_known_do_not_hold_it_up() -> None:
    assert govern(2, total=1, least=0, most=10, others=[need(total=None, least=2)]).change == 2


bounds = st.tuples(st.integers(0, 50), st.integers(1, 100)).filter(lambda pair: pair[0] <= pair[1])


@given(
    change=st.integers(-200, 200),
    total=st.integers(0, 200),
    limits=bounds,
    others=st.lists(st.sampled_from([SERVED, LACKING]), max_size=3),
)
def test_the_outcome_lies_within_the_limits_or_moves_toward_them(
    change: int, total: int, limits: tuple[int, int], others: list[FleetNeed]
) -> None:
    least, most = limits

    after = total + govern(change, total=total, least=least, most=most, others=others).change

    assert after >= min(total, least)
    assert after <= max(total, most)
    if change <= 0 and total < least:
        assert after == least
    if total > most and change >= 0:
        assert after == most


@given(change=st.integers(-200, 200), total=st.integers(0, 200), limits=bounds)
def test_a_governed_change_is_not_reversed_by_the_next_run(
    change: int, total: int, limits: tuple[int, int]
) -> None:
    least, most = limits
    first = govern(change, total=total, least=least, most=most)
    if (
        total + first.change < least
    ):  # as in autoscale-core, up is not raised to the minimum at once
        return

    again = govern(0, total=total + first.change, least=least, most=most)

    assert again.change <= 0 if total + first.change > most else again.change == 0


# ---- making room


def test_the_fleet_that_needs_its_workers_least_makes_room() -> None:
    asking = need("asking", total=4, desired=8)
    rich = need("rich", total=10, desired=2)
    poor = need("poor", total=10, desired=9)

    assert fleet_to_shrink(asking, [asking, poor, rich]) is rich


@pytest.mark.parametrize(
    "other",
    [
        need("other", total=2, least=2, desired=0),  # has only its minimum
        need("other", total=4, desired=8),  # is in as much need
        need("other", total=4, desired=9),  # in more
        need("other", total=0, desired=0),  # has nothing
        need("other", total=None),
    ],
)
def test_a_fleet_with_equal_need_or_at_its_minimum_does_not_make_room(
    other: FleetNeed,
) -> None:
    assert fleet_to_shrink(need("asking", total=4, desired=8), [other]) is None
