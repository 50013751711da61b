"""Goals beside the backlog goal: messages per worker, and the age of the oldest message."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.errors import SourceUnavailable
from penstock.domain.scaling.recommendation import (
    Profile,
    QueueLoad,
    ReadingWindow,
    Recommendation,
    Replicas,
    Sample,
    Staged,
    analyse,
    check_reading,
    combine,
)

COUNTED = Profile(samples_needed=1, messages_per_worker=20, most_up=100)
AGED = Profile(samples_needed=1, backlog_goal_s=0, oldest_goal_ms=30_000, most_up=100)


def decided(profile: Profile, running: int, ready: int, **more: Any) -> Recommendation:
    there = Replicas(running=running, requested=running)
    return analyse(ReadingWindow(), Sample(ready=ready, **more), there, profile)[1]


# ---- messages per worker


@pytest.mark.parametrize(
    ("running", "ready", "needed", "reason"),
    [
        (1, 100, 5, "backlog"),
        (1, 101, 6, "backlog"),
        (5, 100, 5, "steady"),
        (5, 1, 1, "less_needed"),
        (5, 0, 0, "idle"),
    ],
)
def test_each_worker_covers_its_number_of_messages(
    running: int, ready: int, needed: int, reason: str
) -> None:
    found = decided(COUNTED, running, ready)

    assert (found.wanted, found.reason) == (needed, reason)
    assert found.inputs.messages_per_worker == 20


def test_messages_per_worker_take_the_place_of_the_backlog_goal() -> None:
    """Rates do not matter: sources that need this goal do not report any."""
    assert decided(COUNTED, 1, 100, consume_rate=50.0).wanted == 5


def test_one_worker_stays_if_messages_waited_within_the_window() -> None:
    profile = Profile(samples_needed=2, messages_per_worker=20)
    there = Replicas(running=2, requested=2)
    window, _ = analyse(ReadingWindow(), Sample(ready=5), there, profile)

    _, found = analyse(window, Sample(ready=0), there, profile)

    assert (found.wanted, found.reason) == (1, "less_needed")


# ---- the age of the oldest


def test_the_age_goal_wants_enough_workers_to_take_the_backlog_in_time() -> None:
    """600 messages, 2 a second per worker, 30 s: ten workers, before anything is too old."""
    found = decided(AGED, 1, 600, consume_rate=2.0, oldest_ms=1_000)

    assert (found.wanted, found.reason) == (10, "backlog")


def test_while_the_oldest_is_too_old_each_decision_adds_a_worker() -> None:
    by_rate_one_would_do = {"consume_rate": 40.0, "oldest_ms": 30_001}

    assert decided(AGED, 4, 10, **by_rate_one_would_do).wanted == 5
    assert decided(AGED, 4, 10, **by_rate_one_would_do).reason == "oldest"
    assert decided(AGED, 4, 10, **by_rate_one_would_do | {"oldest_ms": 30_000}).wanted == 1


def test_work_that_takes_long_is_scaled_by_age_before_any_rate_is_known() -> None:
    found = decided(AGED, 4, 10, leased=4, oldest_ms=60_000)

    assert (found.wanted, found.reason) == (5, "oldest")


def test_a_queue_in_which_nothing_moves_gets_no_more_workers_for_its_age() -> None:
    """It is paused, or held by a circuit: more workers would wait as well."""
    found = decided(AGED, 4, 10, oldest_ms=3_600_000)

    assert (found.wanted, found.reason) == (4, "no_rate_yet")


def test_the_goal_that_needs_most_workers_decides() -> None:
    both = Profile(samples_needed=1, backlog_goal_s=300, oldest_goal_ms=30_000, most_up=100)

    assert decided(both, 1, 600, consume_rate=2.0, oldest_ms=0).wanted == 10
    assert decided(Profile(samples_needed=1), 1, 600, consume_rate=2.0, oldest_ms=0).wanted == 1


def test_without_messages_no_worker_is_needed_whatever_the_goal() -> None:
    for profile in (COUNTED, AGED):
        assert decided(profile, 3, 0).wanted == 0


@given(
    ready=st.integers(0, 10**9),
    rate=st.floats(0, 10**6),
    age=st.none() | st.integers(0, 10**12),
    running=st.integers(0, 100),
)
def test_an_older_message_never_means_fewer_workers(
    ready: int, rate: float, age: int | None, running: int
) -> None:
    young = decided(AGED, running, ready, consume_rate=rate, oldest_ms=None)
    old = decided(AGED, running, ready, consume_rate=rate, oldest_ms=age)

    assert old.wanted >= young.wanted


def test_an_age_that_cannot_be_is_refused() -> None:
    with pytest.raises(SourceUnavailable, match="age of -1 ms"):
        check_reading(Sample(ready=1, oldest_ms=-1))


# ---- several queues


def test_several_queues_add_up_and_the_oldest_of_all_counts() -> None:
    staged = (Staged("post»1", 2, 0.5),)
    found = combine(
        {
            "mail": Sample(ready=3, leased=1, consume_rate=1.0, publish_rate=0.5, oldest_ms=10),
            "post": Sample(ready=4, consume_rate=2.0, oldest_ms=99, staged=staged),
            "fax": Sample(ready=0),
        }
    )

    assert found == Sample(
        ready=7,
        leased=1,
        consume_rate=3.0,
        publish_rate=0.5,
        oldest_ms=99,
        staged=staged,
        queues=(
            QueueLoad("mail", 3, 1, 10),
            QueueLoad("post", 4, 0, 99),
            QueueLoad("fax", 0, 0, None),
        ),
    )


def test_leased_messages_that_are_known_of_all_queues_together_count_once() -> None:
    by_queue = {"mail": Sample(ready=1, leased=5), "post": Sample(ready=1, leased=5)}

    assert combine(by_queue, shares_leased=True).leased == 5
    assert combine(by_queue).leased == 10


def test_the_reading_of_a_single_queue_is_unchanged() -> None:
    sample = Sample(ready=1, oldest_ms=3)

    assert combine({"mail": sample}) is sample


def test_samples_are_remembered_without_their_queues() -> None:
    sample = combine({"mail": Sample(ready=1), "post": Sample(ready=1)})

    window, _ = analyse(ReadingWindow(), sample, Replicas(running=1, requested=1), Profile())

    assert window.samples == (Sample(ready=2),)
