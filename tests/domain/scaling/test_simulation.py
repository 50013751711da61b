"""Analyser and governor against a modelled queue: the backlog goal is met, and nothing flaps.

A message waits no longer than the goal says, but for what cannot be known sooner: half a worker is
rounded away, a window of samples must be full, and workers need time to start.
"""

from __future__ import annotations

import math
from typing import Any

import pytest

from penstock.domain.scaling.fleet import External, Fleet
from penstock.domain.scaling.recommendation import Profile
from tests.domain.scaling.modelled_queue import ModelledQueue

HOUR = 3_600
DAY = 24 * HOUR

PROFILES = [
    Profile(),  # autoscale-workload-rabbit's defaults: ten samples, five minutes
    Profile(samples_needed=3, backlog_goal_s=60),
    Profile(samples_needed=1, backlog_goal_s=300),
]
STARTS = [0, 30, 120]  # seconds that a worker needs


def a_queue(profile: Profile, start_s: int = 0, **fleet: Any) -> ModelledQueue:
    of = Fleet(name="mail", queue="mail", max=50, replicas=External(), **fleet)
    return ModelledQueue(of, profile, start_s=start_s)


def allowed_wait(queue: ModelledQueue, start_s: int) -> float:
    """The goal with half a worker rounded away, and twice the time in which nothing is decided."""
    return 1.5 * queue.profile.backlog_goal_s + 2 * (window_s(queue) + start_s)


def window_s(queue: ModelledQueue) -> float:
    return queue.profile.samples_needed * queue.fleet.interval_ms / 1_000


every_profile = pytest.mark.parametrize("profile", PROFILES)
every_start = pytest.mark.parametrize("start_s", STARTS)


@every_profile
@every_start
@pytest.mark.parametrize("rate", [3.0, 7.5, 10.0])
def test_a_step_is_followed_once_and_the_goal_is_met(
    profile: Profile, start_s: int, rate: float
) -> None:
    queue = a_queue(profile, start_s)

    queue.play(lambda second: rate if second >= 600 else 0.0, 4 * HOUR)

    assert queue.longest_wait() <= allowed_wait(queue, start_s)
    rounding = (rate + 0.5) / rate  # half a worker of so many
    assert queue.longest_wait(since=2 * HOUR) <= profile.backlog_goal_s * rounding
    assert queue.turns() <= 1
    assert math.ceil(rate) <= queue.counts[-1] <= math.ceil(rate) + 1


@every_profile
def test_there_are_no_workers_before_the_first_and_after_the_last_message(
    profile: Profile,
) -> None:
    queue = a_queue(profile)

    queue.play(lambda second: 5.0 if HOUR <= second < 2 * HOUR else 0.0, 4 * HOUR)

    assert max(queue.counts[:HOUR]) == 0
    assert max(queue.counts) >= 5
    assert queue.counts[-1] == 0
    assert queue.backlogs[-1] == 0
    assert queue.turns() == 1


@every_profile
@every_start
def test_each_spike_scales_up_once_and_down_once(profile: Profile, start_s: int) -> None:
    queue = a_queue(profile, start_s)

    queue.play(lambda second: 0.5 + (500 if second % (HOUR // 2) == 0 else 0), 4 * HOUR)

    assert queue.longest_wait() <= allowed_wait(queue, start_s)
    assert queue.turns() <= 2 * 8


@every_profile
@every_start
def test_a_day_is_followed_up_in_the_morning_and_down_in_the_evening(
    profile: Profile, start_s: int
) -> None:
    def arrivals(second: int) -> float:
        return 1 + 5.5 * (1 - math.cos(2 * math.pi * second / DAY))  # from 1 to 12

    queue = a_queue(profile, start_s)

    queue.play(arrivals, 2 * DAY)

    assert queue.longest_wait() <= allowed_wait(queue, start_s)
    # A window shorter than the start of a worker is misled by it: one too many, once per step.
    is_short = window_s(queue) < start_s
    assert queue.turns() <= (48 if is_short else 4)  # in two days
    assert 11 <= queue.counts[DAY // 2] <= 14
    assert queue.counts[DAY] <= 3


def test_without_steadiness_a_fractional_worker_flaps_as_in_autoscale_workload_rabbit() -> None:
    steady, unsteadied = a_queue(Profile()), a_queue(Profile(), steady_ms=0, keep_up=False)
    for queue in (steady, unsteadied):
        queue.play(lambda _: 7.5, 6 * HOUR)

    assert steady.turns() == 0
    assert unsteadied.turns() > 100


def test_cool_downs_alone_make_it_calmer_too() -> None:
    turns = []
    for runs in (0, 30):
        queue = a_queue(Profile(), steady_ms=0, keep_up=False, cooldown_runs=runs)
        queue.play(lambda _: 7.5, 6 * HOUR)
        turns.append(queue.turns())

    assert turns[1] < turns[0] / 2


def test_the_limits_hold_whatever_comes() -> None:
    queue = a_queue(Profile(samples_needed=1), 30, min=2)
    limited = Fleet(name="mail", queue="mail", min=2, max=6, replicas=External())
    queue.fleet = limited

    queue.play(lambda second: 50.0 if HOUR < second < HOUR + 600 else 0.0, 3 * HOUR)

    assert min(queue.counts[60:]) == 2
    assert max(queue.counts) == 6
