"""A queue's arrivals, worked on by a fleet that the autoscaler's functions scale."""

import pyarrow as arrow
import pytest
from msgspec.structs import replace

from penstock.domain.limits import HOUR, MINUTE, SECOND
from penstock.domain.scaling.fleet import External, Fleet
from penstock.domain.scaling.recommendation import Profile
from penstock.pipeline.replays.fleet import QueueArrivals, SimulatedFleet, backtest
from tests.pipeline.arrivals import Arrival, arrivals_of

FLEET = Fleet(queue="mail", max=10, replicas=External())
PROFILE = Profile(samples_needed=1)


def played(arrivals, fleet=FLEET, profile=PROFILE, *, until=HOUR, **more):
    return backtest(arrivals_of(arrivals), fleet, profile, from_at=0, to_at=until, **more)


def burst(count, *, at=1_000, work_ms=1_000):
    return [Arrival(at, work_ms) for _ in range(count)]


def test_workers_of_a_fixed_fleet_claim_messages_in_order():
    fixed = replace(FLEET, min=2, max=2)

    found = played([Arrival(0, 1000), Arrival(0, 1000), Arrival(0, 1000), Arrival(0, 500)], fixed)

    assert (found.messages, found.unfinished) == (4, 0)
    assert (found.age_p50_ms, found.age_p99_ms, found.age_max_ms) == (0, 1000, 1000)
    assert (found.backlog_max, found.clear_max_ms) == (2, 1000)
    assert (found.worker_hours, found.workers_max, found.changes) == (2.0, 2, 0)


def test_an_empty_fleet_starts_its_first_worker_at_the_next_interval():
    found = played(burst(1), start_ms=2_000)

    # Looked at each 10 s; the worker is there 2 s later.
    assert found.age_max_ms == 11_000
    assert found.workers_max == 1


def test_one_more_slot_handles_one_more_message():
    fixed = replace(FLEET, min=1, max=1)

    assert played(burst(4), fixed, slots=4).age_max_ms == 0
    assert played(burst(4), fixed, slots=1).age_max_ms == 3_000


def test_a_backlog_brings_more_workers_and_its_end_takes_them_away():
    found = played(burst(2_000), profile=Profile(samples_needed=1, backlog_goal_s=60))

    assert found.workers_max == 10
    assert found.changes >= 2
    # All ten for the whole hour would be ten.
    assert found.worker_hours < 4


def test_a_shorter_goal_costs_more_and_clears_sooner():
    slow = played(burst(2_000), profile=Profile(samples_needed=1, backlog_goal_s=900))
    fast = played(burst(2_000), profile=Profile(samples_needed=1, backlog_goal_s=30))

    assert fast.clear_max_ms < slow.clear_max_ms
    assert fast.age_p99_ms < slow.age_p99_ms
    assert fast.workers_max > slow.workers_max


def test_up_and_down_within_minutes_is_a_flap():
    shaky = replace(FLEET, steady_ms=0, keep_up=False)
    waves = [a for n in range(10) for a in burst(30, at=n * 2 * MINUTE, work_ms=500)]

    assert played(waves, shaky).flaps > 5
    assert played(waves, FLEET).flaps < played(waves, shaky).flaps


def test_a_fleet_that_was_scaled_just_now_cools_down():
    cooling = replace(FLEET, cooldown_up_ms=10 * MINUTE)
    quick = Profile(samples_needed=1, backlog_goal_s=1)

    # The first worker at once, the others ten minutes later.
    found = played(burst(900), cooling, profile=quick)

    assert found.clear_max_ms > 10 * MINUTE
    assert played(burst(900), profile=quick).clear_max_ms < 5 * MINUTE


def test_a_backlog_that_is_never_cleared_counts_as_long_as_it_lasts():
    stuck = replace(FLEET, min=1, max=1)

    found = played([Arrival(0, 10**9), *burst(3, at=MINUTE), Arrival(50 * MINUTE, 1)], stuck)

    assert found.clear_max_ms >= 49 * MINUTE


def test_a_stopped_worker_finishes_its_messages():
    crew = SimulatedFleet(arrivals_of(burst(1, at=0, work_ms=5_000)), from_at=0, slots=1)
    crew.grow(1, start_ms=0)
    crew.advance(1_000)
    crew.shrink(1)
    crew.advance(10_000)

    assert (crew.running, crew.finished, crew.slot_ms) == (0, 1, 5_000)


def test_idle_workers_are_stopped_before_busy_ones():
    crew = SimulatedFleet(arrivals_of(burst(1, at=0, work_ms=5_000)), from_at=0, slots=1)
    crew.grow(2, start_ms=0)
    crew.advance(1_000)
    crew.shrink(1)
    crew.advance(10_000)

    assert (crew.running, crew.finished) == (1, 1)
    assert crew.slot_ms == 2 * 1_000 + 9_000


def test_it_ends_although_no_message_is_ever_claimed():
    stuck = replace(FLEET, max=1)

    found = played([Arrival(0, 10**9), Arrival(1, 1)], stuck, until=MINUTE)

    assert found.unfinished == 1


def test_messages_are_claimed_in_the_order_of_arrival_whatever_their_order_in_the_table():
    fixed = replace(FLEET, min=1, max=1)

    found = played([Arrival(2_000, 5_000), Arrival(1_000, 10)], fixed)

    assert found.age_max_ms == 0


def test_parts_of_a_table_are_one():
    parts = [arrow.table({"at": [3, 1], "work_ms": [30, 10]}).slice(n, 1) for n in (0, 1)]

    found = QueueArrivals.of(arrow.concat_tables(parts))

    assert (list(found.at), list(found.work_ms)) == ([1, 3], [10, 30])


@pytest.mark.parametrize("count", [0, 1])
def test_a_day_without_messages_has_no_ages(count):
    found = played(burst(count), until=MINUTE)

    assert (found.age_p99_ms is None) == (count == 0)
    assert found.messages == count


def test_seconds_are_seconds():
    fixed = replace(FLEET, min=1, max=1)

    assert played(burst(2, at=30 * SECOND), fixed, until=MINUTE).age_max_ms == SECOND
