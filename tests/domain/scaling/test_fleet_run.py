"""One run of a fleet: which rule takes precedence."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.scaling.fleet_run import (
    MAX_UNEXPLAINED_COUNTS,
    CircuitsState,
    FleetReading,
    FleetState,
    record_scaling,
    run,
)
from penstock.domain.scaling.recommendation import Profile, Replicas, Sample
from tests.domain.scaling.fleet_runs import (
    MANY,
    NONE_LEFT,
    NOW,
    PROFILE,
    after_scaling,
    fleet,
    once,
    there,
)

# ---- what the analyser says, within limits


def test_a_recommendation_of_the_analyser_is_decided_within_the_limits() -> None:
    _, free = once(FleetReading(replicas=there(1), sample=MANY), of=fleet(max=10))
    _, bound = once(FleetReading(replicas=there(1), sample=MANY), of=fleet(max=3))

    assert (free.change, free.wanted, free.reason) == (5, 6, "backlog")
    assert (bound.change, bound.wanted, bound.reason) == (2, 3, "at_maximum")
    assert (bound.recommended, bound.because) == (5, "backlog")
    assert bound.inputs is not None


def test_without_a_sample_the_limits_still_hold() -> None:
    blind = FleetReading(replicas=there(0), trouble="source_unavailable")

    _, decision = once(blind, of=fleet(min=2))
    _, content = once(blind)

    assert (decision.change, decision.reason) == (2, "below_minimum")
    assert (content.change, content.reason) == (0, "source_unavailable")


def test_a_run_without_a_reading_does_not_count_as_a_sample() -> None:
    state, _ = once(FleetReading(replicas=there(0), trouble="source_unavailable"))

    assert state.window.samples == ()


# ---- pressure


def test_under_pressure_a_fleet_that_yields_stops_whatever_its_minimum() -> None:
    yielding = FleetReading(replicas=there(3, 1), sample=MANY, yields=True, level=3)

    state, decision = once(yielding, of=fleet(min=2))

    assert (decision.change, decision.wanted, decision.reason) == (-4, 0, "pressure")
    assert decision.level == 3
    assert state.window.samples == ()


def test_pressure_goes_before_cooling_down_and_odd_counts() -> None:
    of = fleet(cooldown_runs=9, max=10)
    state = after_scaling(3, of)

    _, decision = once(FleetReading(replicas=there(9), yields=True), state, of=of)

    assert decision.change == -9


def test_pressure_also_takes_back_those_that_were_only_asked_for() -> None:
    _, decision = once(FleetReading(replicas=there(0, requested=2), yields=True))

    assert (decision.change, decision.wanted) == (-2, 0)


# ---- cooling down


@pytest.mark.parametrize(
    ("settings", "after_up", "after_down"),
    [
        ({}, 0, 0),
        ({"cooldown_runs": 2}, 2, 2),
        ({"cooldown_runs": 2, "cooldown_up_runs": 1}, 1, 2),
        ({"cooldown_runs": 2, "cooldown_down_runs": 3}, 2, 3),
        ({"cooldown_down_runs": 3}, 0, 3),
        ({"cooldown_up_runs": 1, "cooldown_down_runs": 0}, 1, 0),
    ],
)
def test_runs_are_skipped_after_scaling_up_and_down(
    settings: dict[str, int], after_up: int, after_down: int
) -> None:
    of = fleet(max=50, **settings)
    left_out = []
    for change in (1, -1):
        state, count = after_scaling(change, of, running=2), 0
        while True:
            reading = FleetReading(replicas=there(2 + change), sample=MANY)
            state, decision = once(reading, state, of=of)
            if decision.reason != "cooling_down":
                break
            count += 1
            assert state.window.count == 0  # no sample is taken
        left_out.append(count)

    assert left_out == [after_up, after_down]


def test_cooling_down_can_be_a_time() -> None:
    of = fleet(max=50, cooldown_up_ms=5_000, cooldown_down_ms=0)
    state = after_scaling(1, of)
    reading = FleetReading(replicas=there(2), sample=MANY)

    _, early = once(reading, state, of=of, now=NOW + 4_999)
    _, then = once(reading, state, of=of, now=NOW + 5_000)

    assert (early.reason, then.reason) == ("cooling_down", "backlog")


# ---- counts that change by themselves


def test_a_count_that_changed_by_itself_must_be_seen_twice() -> None:
    state, _ = once(FleetReading(replicas=there(3), sample=NONE_LEFT), of=fleet(min=3))

    state, odd = once(FleetReading(replicas=there(0), sample=MANY), state, of=fleet(min=3))
    _, again = once(FleetReading(replicas=there(0), sample=MANY), state, of=fleet(min=3))

    assert (odd.change, odd.reason) == (0, "count_changed")
    assert again.change > 0


def test_a_count_that_flaps_is_never_acted_upon() -> None:
    state, changes = FleetState(), set()
    for number in range(20):
        state, decision = once(FleetReading(replicas=there(3 * (number % 2)), sample=MANY), state)
        changes.add(decision.change)

    assert changes == {0, 1}  # only the very first was believed
    assert state.odd_counts >= MAX_UNEXPLAINED_COUNTS


def test_a_count_between_the_old_and_the_requested_number_is_expected() -> None:
    of = fleet(max=50, patience_ms=0)
    state = after_scaling(5, of, running=1)
    for running in (1, 3, 3, 6):
        state, decision = once(FleetReading(replicas=there(running), sample=MANY), state, of=of)

        assert decision.reason != "count_changed"


# ---- circuits


def test_no_worker_is_started_while_a_circuit_is_open() -> None:
    loaded = FleetReading(replicas=there(1), sample=MANY, circuits=CircuitsState.OPEN)

    _, decision = once(loaded, of=fleet(max=50))
    _, first = once(FleetReading(replicas=there(0), sample=MANY, circuits=CircuitsState.OPEN))

    assert (decision.change, decision.reason) == (0, "circuit_open")
    assert (decision.recommended, decision.because) == (5, "backlog")
    assert first.change == 0


def test_an_open_circuit_does_not_prevent_scaling_down() -> None:
    _, decision = once(
        FleetReading(replicas=there(2), sample=NONE_LEFT, circuits=CircuitsState.OPEN)
    )

    assert decision.change == -2


def test_the_minimum_is_kept_even_then() -> None:
    _, decision = once(
        FleetReading(replicas=there(0), sample=MANY, circuits=CircuitsState.OPEN), of=fleet(min=1)
    )

    assert (decision.change, decision.reason) == (1, "below_minimum")


def test_a_half_open_circuit_needs_exactly_one_worker() -> None:
    _, without_workers = once(
        FleetReading(replicas=there(0), sample=MANY, circuits=CircuitsState.HALF_OPEN)
    )
    _, with_worker = once(
        FleetReading(replicas=there(1), sample=MANY, circuits=CircuitsState.HALF_OPEN)
    )

    assert without_workers.change == 1
    assert (with_worker.change, with_worker.reason) == (0, "circuit_half_open")


# ---- what is wanted, for those who ask


def test_the_wanted_number_stays_until_the_next_decision() -> None:
    slow = Profile(samples_needed=2, backlog_goal_s=1)
    of, state, wanted = fleet(max=50), FleetState(), []
    for _ in range(3):
        state, _ = run(state, FleetReading(replicas=there(1), sample=MANY), of, slow, [], now=NOW)
        wanted.append(state.wanted)

    assert wanted == [1, 6, 6]


readings = st.builds(
    FleetReading,
    replicas=st.builds(
        Replicas,
        running=st.integers(0, 30),
        starting=st.integers(0, 2),
        requested=st.integers(0, 30),
    ),
    sample=st.none() | st.builds(Sample, ready=st.integers(0, 500), consume_rate=st.floats(0, 9)),
    trouble=st.just("source_unavailable"),
    yields=st.booleans(),
    circuits=st.sampled_from(CircuitsState),
)


@given(story=st.lists(readings, max_size=30), least=st.integers(0, 3), more=st.integers(0, 9))
def test_the_wanted_number_is_always_within_the_limits(
    story: list[FleetReading], least: int, more: int
) -> None:
    of = fleet(min=least, max=max(1, least + more), cooldown_runs=1, patience_ms=20_000)
    state = FleetState()
    for number, reading in enumerate(story):
        now = NOW + number * 10_000
        before = reading.replicas.total
        state, decision = run(state, reading, of, PROFILE, [], now=now)

        assert decision.wanted >= 0
        assert state.wanted is None or 0 <= state.wanted <= of.max
        if decision.change > 0:
            assert not reading.yields
            assert decision.wanted <= of.max
        if decision.change < 0 and not reading.yields:
            assert decision.wanted >= min(before, of.min)
        if decision.change:
            state = record_scaling(state, decision, of, now=now)
