"""The time of a store: where it starts, and when data may be pruned by it."""

from __future__ import annotations

import pytest

from penstock.domain.limits import DAY, HOUR, MINUTE, SECOND
from penstock.domain.store.store_time import (
    EARLIEST_WALL,
    MAX_CARRY_MS,
    PRUNING_GAP_MS,
    PRUNING_HOLD_MS,
    Pruning,
    difference_text,
    hold_pruning,
    instant_text,
    plan_start,
)
from penstock.testing.clock import NOON


@pytest.mark.parametrize("behind_ms", [0, 1, DAY])
def test_a_store_that_is_behind_continues_at_the_wall_clock(behind_ms: int) -> None:
    start = plan_start(NOON - behind_ms, NOON)

    assert (start.now, start.is_set_back, start.ahead_ms) == (NOON, False, 0)


def test_a_mark_is_carried_up_to_the_bound() -> None:
    start = plan_start(NOON + MAX_CARRY_MS, NOON)

    assert (start.now, start.is_set_back) == (NOON + MAX_CARRY_MS, False)


def test_beyond_the_bound_the_store_is_set_back_to_the_wall_clock() -> None:
    start = plan_start(NOON + MAX_CARRY_MS + 1, NOON)

    assert (start.now, start.is_set_back) == (NOON, True)
    assert start.ahead_ms == MAX_CARRY_MS + 1


def test_a_wall_clock_that_was_never_set_does_not_set_a_store_back() -> None:
    for wall in (0, EARLIEST_WALL - 1):
        start = plan_start(NOON, wall)
        assert (start.now, start.is_set_back) == (NOON, False)

    assert plan_start(NOON, EARLIEST_WALL).is_set_back


def test_rounds_that_follow_each_other_prune() -> None:
    state = hold_pruning(None, now=NOON)
    for minute in range(1, 5):
        state = hold_pruning(state, now=NOON + minute * MINUTE)
        assert state.held_until is None
    assert hold_pruning(state, now=state.seen_at + PRUNING_GAP_MS).held_until is None


def test_after_a_gap_nothing_is_pruned_for_a_day() -> None:
    later = NOON + PRUNING_GAP_MS + 1

    held = hold_pruning(Pruning(NOON), now=later)

    assert held == Pruning(later, later + PRUNING_HOLD_MS)
    still = hold_pruning(held, now=later + PRUNING_HOLD_MS - 1)
    assert still.held_until == held.held_until
    assert hold_pruning(still, now=later + PRUNING_HOLD_MS).held_until is None


def test_a_store_that_runs_for_an_hour_a_week_is_pruned_with_every_second_start() -> None:
    state = Pruning(NOON)
    is_held = []
    for week in range(1, 5):
        state = hold_pruning(state, now=NOON + week * 7 * DAY)
        is_held.append(state.held_until is not None)

    assert is_held == [True, False, True, False]


def test_a_store_that_was_set_back_forgets_that_pruning_is_held() -> None:
    ahead = NOON + 2 * DAY

    assert hold_pruning(Pruning(ahead, ahead + DAY), now=NOON) == Pruning(NOON)


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "0 s"),
        (7, "0.007 s"),
        (-90 * SECOND, "1 min 30 s"),
        (2 * DAY, "2 d"),
        (DAY + 2 * HOUR + 3 * MINUTE + 4005, "1 d 2 h 3 min 4.005 s"),
    ],
)
def test_a_difference_is_rendered_exactly(ms: int, text: str) -> None:
    assert difference_text(ms) == text


def test_an_instant_beyond_the_calendar_is_rendered_as_a_number() -> None:
    assert instant_text(NOON) == "2030-03-14T12:00:00.000Z"
    assert instant_text(2**62) == f"{2**62} ms"
