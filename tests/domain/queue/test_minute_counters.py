"""Graphs from samples: steps, changes between samples, and missing samples."""

from __future__ import annotations

import pytest

from penstock.domain.errors import InvalidRequest
from penstock.domain.limits import DAY, HOUR, MINUTE
from penstock.domain.queue.minute_counters import (
    MAX_POINTS,
    MinuteCounters,
    Step,
    choose_step,
    latency_of,
    percentile,
    points,
)
from tests.clocks import NOON


def a_sample(minute_at: int, *, ready: int = 0, sent: int = 0, done: int = 0) -> MinuteCounters:
    return MinuteCounters(7, minute_at, 0, ready, 0, 0, sent, done, 0, 0, 0, 0, 0)


def a_step(minute_at: int, step_ms: int = MINUTE, **counts: int) -> Step:
    sample = a_sample(minute_at, **counts)
    return Step((minute_at - 1) // step_ms, sample, sample.ready)


def draw(
    *steps: Step, before: MinuteCounters | None = None, is_new: bool = False, minutes: int = 4
):
    return points(
        list(steps),
        before=before,
        is_new=is_new,
        from_at=NOON,
        to_at=NOON + minutes * MINUTE,
        step_ms=MINUTE,
    )


def test_a_point_shows_what_was_there_at_its_end_and_what_happened_in_it():
    before = a_sample(NOON, sent=10, done=8)
    steps = (
        a_step(NOON + MINUTE, ready=3, sent=15, done=9),
        a_step(NOON + 2 * MINUTE, sent=15, done=12),
    )

    first, second = draw(*steps, before=before, minutes=2)

    assert (first.at, first.ready) == (NOON, 3)
    assert (first.happened["sent_total"], first.happened["done_total"]) == (5, 1)
    assert (second.at, second.ready) == (NOON + MINUTE, 0)
    assert (second.happened["sent_total"], second.happened["done_total"]) == (0, 3)


def test_a_missing_sample_means_no_change():
    drawn = draw(a_step(NOON + 2 * MINUTE, ready=4, sent=4), before=a_sample(NOON, ready=1))

    assert [point.ready for point in drawn] == [1, 4, 4, 4]
    assert [point.happened["sent_total"] for point in drawn] == [0, 4, 0, 0]


def test_before_the_first_sample_nothing_is_known():
    drawn = draw(a_step(NOON + 3 * MINUTE, ready=2, sent=900))

    assert [point.at for point in drawn] == [NOON + 2 * MINUTE, NOON + 3 * MINUTE]
    assert drawn[0].happened["sent_total"] == 0, "they may have been sent at any time before"


def test_a_new_queue_had_nothing_before():
    drawn = draw(a_step(NOON + MINUTE, sent=5), is_new=True)

    assert drawn[0].happened["sent_total"] == 5


def test_without_any_sample_there_is_no_graph():
    assert draw() == []


def test_without_any_sample_no_step_since_the_epoch_is_looked_at():
    far = 2**62  # to count the steps until then takes for ever

    assert points([], before=None, is_new=False, from_at=0, to_at=far, step_ms=MINUTE) == []


def test_a_sample_at_the_end_of_a_step_belongs_to_it():
    step = a_step(NOON + HOUR, HOUR, sent=1)

    assert step.step_no == NOON // HOUR


@pytest.mark.parametrize(
    ("span_ms", "step_ms"),
    [(HOUR, MINUTE), (8 * HOUR, MINUTE), (DAY, 5 * MINUTE), (7 * DAY, HOUR), (90 * DAY, 6 * HOUR)],
)
def test_the_finest_step_is_chosen_that_makes_few_enough_points(span_ms, step_ms):
    assert choose_step(NOON, NOON + span_ms) == step_ms
    assert span_ms / step_ms <= MAX_POINTS


@pytest.mark.parametrize(
    ("span_ms", "step_ms"),
    [
        (0, None),
        (-1, None),
        (100_000 * DAY, None),
        (HOUR, 1),
        (HOUR, MINUTE + 1),
        (501 * MINUTE, MINUTE),
    ],
)
def test_a_span_or_a_step_that_makes_no_graph_is_refused(span_ms, step_ms):
    with pytest.raises(InvalidRequest):
        choose_step(NOON, NOON + span_ms, step_ms)


def test_percentiles_are_values_that_there_were():
    values = list(range(1, 101))

    assert (percentile(values, 50), percentile(values, 95), percentile([7], 95)) == (50, 95, 7)


def test_latency_is_reported_for_waiting_and_for_work():
    latency = latency_of([(10, 1), (30, 3), (20, 2)])

    assert (latency.wait_p50_ms, latency.wait_p95_ms) == (20, 30)
    assert (latency.work_p50_ms, latency.work_p95_ms) == (2, 3)
    assert latency_of([]).wait_p50_ms is None
