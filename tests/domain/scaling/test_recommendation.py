"""How many workers a queue needs, by the rules of autoscale-workload-rabbit."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.errors import ReplicasUnavailable, SourceUnavailable
from penstock.domain.scaling.recommendation import (
    Profile,
    ReadingWindow,
    Recommendation,
    Replicas,
    Sample,
    ScalingReason,
    Staged,
    analyse,
    check_reading,
    check_replicas,
)


def replicas(running: int = 1, starting: int = 0) -> Replicas:
    return Replicas(running=running, starting=starting, requested=running + starting)


def sample(ready: int = 0, **more: Any) -> Sample:
    return Sample(ready=ready, **more)


def staged(*ready: int, rate: float = 0.0) -> tuple[Staged, ...]:
    return tuple(Staged(f"mail»{number}", one, rate) for number, one in enumerate(ready))


def profile(samples_needed: int = 3, backlog_goal_s: int = 1, **more: Any) -> Profile:
    return Profile(samples_needed=samples_needed, backlog_goal_s=backlog_goal_s, **more)


def analyse_all(samples: list[Sample], there: Replicas, by: Profile) -> list[Recommendation]:
    """What is recommended at each of these."""
    window, said = ReadingWindow(), []
    for one in samples:
        window, recommended = analyse(window, one, there, by)
        said.append(recommended)
    return said


def decided(one: Sample, there: Replicas, by: Profile) -> Recommendation:
    """What is recommended at the end of a window of samples that are all alike."""
    return analyse_all([one] * by.samples_needed, there, by)[-1]


# ---- the first message


@pytest.mark.parametrize("one", [sample(1), sample(0, staged=staged(1)), sample(7)])
def test_the_first_message_brings_the_first_worker_at_once(one: Sample) -> None:
    [recommended] = analyse_all([one], replicas(0), profile())

    assert (recommended.change, recommended.reason) == (1, ScalingReason.FIRST_MESSAGE)


def test_no_message_brings_no_worker() -> None:
    said = analyse_all([sample(0)] * 7, replicas(0), profile())

    assert [one.change for one in said] == [0] * 7


def test_the_first_message_is_not_added_to_the_window() -> None:
    window, _ = analyse(ReadingWindow(), sample(1), replicas(0), profile())

    assert window == ReadingWindow()


# ---- workers that start


def test_nothing_is_recommended_while_a_worker_starts() -> None:
    busy = sample(1_000, consume_rate=0.1)

    said = analyse_all([busy] * 30, replicas(1, starting=1), profile())

    assert {(one.change, one.reason) for one in said} == {(0, ScalingReason.STARTING)}


def test_a_reading_while_a_worker_starts_is_not_added_to_the_window() -> None:
    by, busy = profile(samples_needed=2), sample(10, consume_rate=1.0)
    window, _ = analyse(ReadingWindow(), busy, replicas(1), by)

    still, _ = analyse(window, busy, replicas(1, starting=1), by)
    _, recommended = analyse(still, busy, replicas(1), by)

    assert still == window
    assert recommended.reason is ScalingReason.BACKLOG


# ---- the end of a window


@pytest.mark.parametrize(
    "one",
    [
        sample(10, consume_rate=1.0),
        sample(0, consume_rate=1.0, staged=staged(4, 6)),
        sample(4, consume_rate=1.0, staged=staged(6)),
    ],
)
def test_more_are_recommended_only_after_as_many_samples_as_are_needed(one: Sample) -> None:
    said = analyse_all([one] * 6, replicas(1), profile(samples_needed=3))

    assert [each.change for each in said] == [0, 0, 5, 0, 0, 5]
    assert [each.reason for each in said[:3]] == [
        ScalingReason.GATHERING,
        ScalingReason.GATHERING,
        ScalingReason.BACKLOG,
    ]


@pytest.mark.parametrize(
    "one",
    [
        sample(1, consume_rate=2.0),
        sample(0, consume_rate=2.0, staged=staged(1)),
        sample(0, consume_rate=2.0, staged=staged(0, 1)),
    ],
)
def test_fewer_are_recommended_when_fewer_would_do(one: Sample) -> None:
    said = analyse_all([one] * 3, replicas(2), profile(samples_needed=3))

    assert [each.change for each in said] == [0, 0, -1]
    assert said[-1].reason is ScalingReason.LESS_NEEDED


@pytest.mark.parametrize(
    ("one", "running", "needed", "change"),
    [
        (sample(1, consume_rate=0.1), 1, 10, 5),  # at most five more at once
        (sample(3, consume_rate=2.0), 1, 2, 1),  # one and a half is two
        (sample(1, consume_rate=2.0), 2, 1, -1),
        (sample(29, consume_rate=20.0), 1, 1, 0),  # less than one and a half is one
    ],
)
def test_the_worked_examples_of_autoscale_workload_rabbit(
    one: Sample, running: int, needed: int, change: int
) -> None:
    recommended = decided(one, replicas(running), profile())

    assert (recommended.inputs.needed, recommended.change) == (needed, change)


def test_down_goes_all_the_way_at_once() -> None:
    recommended = decided(sample(1, consume_rate=100.0), replicas(100), profile())

    assert recommended.change == -99


def test_no_rate_and_no_messages_need_no_worker() -> None:
    recommended = decided(sample(0), replicas(4), profile())

    assert (recommended.change, recommended.reason) == (-4, ScalingReason.IDLE)


def test_messages_without_a_rate_yet_keep_who_is_there() -> None:
    recommended = decided(sample(9), replicas(3), profile())

    assert (recommended.change, recommended.reason) == (0, ScalingReason.NO_RATE_YET)


def test_publishing_to_a_staging_queue_keeps_the_running_workers() -> None:
    quiet = sample(0, staged=staged(0, rate=0.5))

    kept = decided(quiet, replicas(3), profile())
    first = decided(quiet, replicas(0), profile())

    assert (kept.change, kept.reason) == (0, ScalingReason.NO_RATE_YET)
    assert first.change == 1


def test_publishing_to_the_queue_itself_keeps_no_worker() -> None:
    recommended = decided(sample(0, publish_rate=9.0), replicas(2), profile())

    assert recommended.change == -2


def test_one_worker_stays_while_the_average_backlog_is_not_empty() -> None:
    by = profile(samples_needed=2)
    samples = [sample(1, consume_rate=10.0), sample(0, consume_rate=10.0)]

    recommended = analyse_all(samples, replicas(4), by)[-1]

    assert recommended.inputs.needed == 1


def test_a_steady_state_needs_no_change() -> None:
    said = analyse_all(
        [sample(300, consume_rate=3.0)] * 9, replicas(3), profile(backlog_goal_s=100)
    )

    assert [one.change for one in said] == [0] * 9
    assert said[-1].reason is ScalingReason.STEADY


@pytest.mark.parametrize("beside", [(), staged(0)])
@pytest.mark.parametrize(
    ("rates", "needed"),
    [((0.5, 1.0, 1.5), 6), ((2.0, 4.0, 12.0), 1), ((2.0, 3.0, 4.0), 2)],
)
def test_up_and_down_are_decided_on_the_average_rate_of_the_window(
    beside: tuple[Staged, ...], rates: tuple[float, ...], needed: int
) -> None:
    """Three messages to be cleared in a second, by two workers at first."""
    samples = [sample(3, consume_rate=rate, staged=beside) for rate in rates]

    recommended = analyse_all(samples, replicas(2), profile(samples_needed=3))[-1]

    assert recommended.change == needed - 2
    assert recommended.inputs.consume_rate == pytest.approx(sum(rates) / 3)


def test_the_backlog_is_that_of_this_moment_and_not_an_average() -> None:
    by = profile(samples_needed=3, backlog_goal_s=10)
    samples = [sample(1_000, consume_rate=1.0)] * 2 + [sample(20, consume_rate=1.0)]

    recommended = analyse_all(samples, replicas(1), by)[-1]

    assert recommended.inputs.backlog == 20
    assert recommended.inputs.needed == 2


def test_a_decision_does_not_empty_the_window() -> None:
    by = profile(samples_needed=2)
    window = ReadingWindow()
    for rate in (8.0, 4.0, 2.0, 0.0):
        window, recommended = analyse(window, sample(1, consume_rate=rate), replicas(1), by)

    assert recommended.inputs.consume_rate == 1.0
    assert [one.consume_rate for one in window.samples] == [2.0, 0.0]


def test_staging_queues_are_averaged_over_all_pairs_of_sample_and_queue() -> None:
    by = profile(samples_needed=2)
    samples = [sample(0, staged=staged(6, 0)), sample(0, staged=staged(3))]

    recommended = analyse_all(samples, replicas(1), by)[-1]

    assert recommended.inputs.average_backlog == 3.0


def test_one_worker_is_enough_if_no_consumer_is_left() -> None:
    by = profile(samples_needed=2)
    samples = [sample(0, consume_rate=5.0), sample(0, consume_rate=5.0)]

    recommended = analyse_all(samples, replicas(0), by)[-1]

    assert recommended.change == 0


def test_every_recommendation_carries_all_that_it_was_made_of() -> None:
    one = sample(20, leased=3, consume_rate=2.0, publish_rate=1.0, staged=staged(10, rate=0.5))

    recommended = decided(one, replicas(2), profile(samples_needed=4, backlog_goal_s=10))

    inputs = recommended.inputs
    assert (inputs.running, inputs.starting, inputs.requested) == (2, 0, 2)
    assert (inputs.samples, inputs.samples_needed, inputs.backlog_goal_s) == (4, 4, 10)
    assert (inputs.ready, inputs.leased, inputs.staged, inputs.backlog) == (20, 3, 10, 30)
    assert (inputs.average_backlog, inputs.consume_rate, inputs.publish_rate) == (30.0, 2.0, 1.0)
    assert (inputs.staged_publish_rate, inputs.rate_per_worker, inputs.needed) == (0.5, 1.0, 3)
    assert recommended.wanted == 3


# ---- beyond autoscale-workload-rabbit


def test_leased_messages_count_with_count_leased() -> None:
    one = sample(1, leased=2, consume_rate=2.0)

    unsteadied = decided(one, replicas(2), profile())
    counted = decided(one, replicas(2), profile(count_leased=True))

    assert (unsteadied.change, counted.change) == (-1, 1)


def test_the_last_busy_worker_stays_with_keep_busy() -> None:
    busy = sample(0, leased=1)

    unsteadied = decided(busy, replicas(3), profile())
    kept = decided(busy, replicas(3), profile(keep_busy=True))
    idle = decided(sample(0), replicas(3), profile(keep_busy=True))

    assert unsteadied.change == -3
    assert (kept.change, kept.reason) == (-2, ScalingReason.BUSY)
    assert idle.change == -3


def test_a_leased_first_message_does_not_start_another_worker() -> None:
    [recommended] = analyse_all([sample(0, leased=1)], replicas(0), profile(keep_busy=True))

    assert recommended.change == 0


# ---- any reading

counts = st.integers(0, 10**9)
rates = st.floats(0, 1e9)
samples_of = st.builds(
    Sample,
    ready=counts,
    leased=counts,
    consume_rate=rates,
    publish_rate=rates,
    staged=st.lists(st.builds(Staged, st.just("mail»x"), counts, rates), max_size=3).map(tuple),
)
runs = st.lists(
    st.tuples(samples_of, st.integers(0, 1_000), st.integers(0, 2)), min_size=1, max_size=40
)


@given(
    runs=runs,
    needed=st.integers(1, 6),
    goal=st.integers(1, 1_000),
    switches=st.tuples(st.booleans(), st.booleans()),
)
def test_a_recommendation_is_never_impossible(
    runs: list[tuple[Sample, int, int]], needed: int, goal: int, switches: tuple[bool, bool]
) -> None:
    by = profile(needed, goal, count_leased=switches[0], keep_busy=switches[1])
    window, since = ReadingWindow(), 0
    for one, running, starting in runs:
        before = window
        window, recommended = analyse(window, one, replicas(running, starting), by)

        assert recommended.wanted >= 0
        assert recommended.change <= by.most_up
        assert len(window.samples) <= needed
        is_taken = window is not before
        since += is_taken
        if starting or (is_taken and since < needed):
            assert recommended.change == 0
        elif is_taken:
            since = 0


@given(one=samples_of, running=st.integers(1, 50))
def test_the_more_waits_the_more_are_needed(one: Sample, running: int) -> None:
    more = Sample(
        ready=one.ready * 2 + 1,
        leased=one.leased,
        consume_rate=one.consume_rate,
        publish_rate=one.publish_rate,
        staged=one.staged,
    )

    least = decided(one, replicas(running), profile()).inputs.needed
    most = decided(more, replicas(running), profile()).inputs.needed

    assert least is not None
    assert most is not None
    assert least <= most


# ---- what cannot be true


@pytest.mark.parametrize(
    "wrong",
    [
        sample(-1),
        sample(1, leased=-2),
        sample(1, consume_rate=math.nan),
        sample(1, consume_rate=math.inf),
        sample(1, publish_rate=-0.5),
        sample(1, staged=staged(-1)),
        sample(1, staged=staged(1, rate=math.nan)),
    ],
)
def test_a_sample_that_cannot_be_true_is_not_taken(wrong: Sample) -> None:
    with pytest.raises(SourceUnavailable):
        check_reading(wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        Replicas(running=-1, requested=0),
        Replicas(running=0, starting=-1, requested=0),
        Replicas(running=0, requested=-3),
        Replicas(running=10**9, requested=10**9),
    ],
)
def test_a_count_of_replicas_that_cannot_be_true_is_not_taken(wrong: Replicas) -> None:
    with pytest.raises(ReplicasUnavailable):
        check_replicas(wrong)
