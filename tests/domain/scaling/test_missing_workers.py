"""Workers that were requested and do not appear, or disappear again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.scaling.fleet import Fleet
from penstock.domain.scaling.fleet_run import (
    FleetReading,
    FleetState,
    give_up_worker,
    is_short,
    record_shortage,
)
from penstock.domain.scaling.recommendation import Sample
from tests.domain.scaling.fleet_runs import (
    MANY,
    NONE_LEFT,
    NOW,
    after_scaling,
    fleet,
    once,
    there,
)


def test_requested_workers_are_missing_only_after_the_fleets_patience_is_over() -> None:
    of = fleet(max=50, patience_ms=60_000)
    state = after_scaling(5, of)
    found_replicas = there(2, requested=6)
    missing = FleetReading(replicas=found_replicas, sample=MANY)

    state, waiting = once(missing, state, of=of, now=NOW + 59_999)
    assert waiting.reason == "replicas_missing"
    assert not is_short(state, found_replicas, of, now=NOW + 59_999)

    assert is_short(state, found_replicas, of, now=NOW + 60_000)
    assert not is_short(state, there(6), of, now=NOW + 60_000)
    assert not is_short(record_shortage(state), found_replicas, of, now=NOW + 60_000)
    state, tired = once(missing, state, of=of, now=NOW + 60_000)
    assert tired.reason == "backlog"


def test_the_wait_ends_when_all_workers_have_appeared_or_start() -> None:
    of = fleet(max=50)
    state = after_scaling(5, of)

    _, started = once(FleetReading(replicas=there(6), sample=MANY), state, of=of)
    _, starting = once(FleetReading(replicas=there(1, 5), sample=MANY), state, of=of)

    assert started.reason == "backlog"
    assert starting.reason == "starting"


# The wait ends for good when the request is met or withdrawn, so that a later fall of the count
# is acted upon like any other.


def reached(of: Fleet, count: int) -> FleetState:
    """All `count` workers were asked for, and a run has seen them."""
    state = after_scaling(count, of, running=0)
    state, _ = once(FleetReading(replicas=there(count), sample=NONE_LEFT), state, of=of)
    return state


def looks(
    state: FleetState, of: Fleet, reading: FleetReading, times: int, *, since: int = NOW
) -> list[tuple[int, str]]:
    """Decisions of so many runs, ten seconds apart."""
    found = []
    for number in range(1, times + 1):
        state, decision = once(reading, state, of=of, now=since + number * 10_000)
        found.append((decision.change, decision.reason))
    return found


def test_after_an_orderly_restart_workers_come_back_in_the_second_run() -> None:
    of = fleet(min=2)
    drained = FleetReading(replicas=there(0), sample=NONE_LEFT)

    assert looks(reached(of, 2), of, drained, 2) == [(0, "count_changed"), (2, "below_minimum")]


def test_a_restart_before_the_workers_were_seen_starts_them_in_the_first_run() -> None:
    """The drained manager has nothing on request, so there is nothing to wait for."""
    of = fleet(min=2)
    state = after_scaling(2, of, running=0)

    assert looks(state, of, FleetReading(replicas=there(0)), 1) == [(2, "below_minimum")]


def test_a_worker_that_exits_with_a_backlog_left_is_replaced() -> None:
    of = fleet()
    left = FleetReading(replicas=there(0), sample=Sample(ready=9))

    assert looks(reached(of, 1), of, left, 2) == [(0, "count_changed"), (1, "first_message")]


def test_a_worker_that_exits_before_it_was_seen_is_replaced_in_the_next_run() -> None:
    of = fleet()
    left = FleetReading(replicas=there(0), sample=Sample(ready=9))

    assert looks(after_scaling(1, of, running=0), of, left, 1) == [(1, "first_message")]


def test_a_manually_scaled_deployment_is_corrected_in_the_second_run() -> None:
    of = fleet(min=4)
    by_hand = FleetReading(replicas=there(2), sample=NONE_LEFT)

    assert looks(reached(of, 4), of, by_hand, 2) == [(0, "count_changed"), (2, "below_minimum")]


def test_workers_of_a_repaired_command_are_started_in_the_next_run() -> None:
    """They never appeared; the new manager knows nothing of the request."""
    of = fleet(min=3)
    state = after_scaling(3, of, running=0)
    dying = FleetReading(replicas=there(0, requested=3), sample=NONE_LEFT)
    state, waiting = once(dying, state, of=of, now=NOW + 10_000)
    assert waiting.reason == "replicas_missing"

    repaired = FleetReading(replicas=there(0), sample=NONE_LEFT)
    assert looks(state, of, repaired, 1, since=NOW + 10_000) == [(3, "below_minimum")]


def test_workers_that_exit_long_after_they_appeared_are_not_reported_as_missing() -> None:
    of = fleet(max=50, patience_ms=5_000)
    state = reached(of, 18)
    one_less = there(17, requested=18)

    assert not is_short(state, one_less, of, now=NOW + 60_000)


@given(falls=st.lists(st.integers(0, 5), min_size=1, max_size=10), patience=st.integers(0, 300_000))
def test_once_all_were_there_no_count_is_waited_for_again(falls: list[int], patience: int) -> None:
    of = fleet(max=50, patience_ms=patience)
    state = reached(of, 6)
    for number, running in enumerate(falls):
        found_replicas = there(running, requested=6)
        state, decision = once(
            FleetReading(replicas=found_replicas), state, of=of, now=NOW + number * 10_000
        )

        assert decision.reason != "replicas_missing"
        assert not is_short(state, found_replicas, of, now=NOW + 10**9)


def test_a_fleet_that_makes_room_gives_up_one_worker() -> None:
    state, _ = once(FleetReading(replicas=there(4), sample=MANY))

    state, decision = give_up_worker(state)

    assert (decision.change, decision.wanted, decision.reason) == (-1, 3, "making_room")
    assert state.expected == 3
