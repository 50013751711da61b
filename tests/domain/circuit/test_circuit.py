"""When a circuit opens, probes and closes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.circuit import circuit as circuits
from penstock.domain.circuit.circuit import (
    Circuit,
    CircuitState,
    HeldQueue,
    OutcomeCounts,
    Permit,
    RequestOutcome,
)
from penstock.domain.circuit.settings import BreakerSettings, BreakerTask, check
from penstock.domain.errors import InvalidRequest
from tests.domain.circuit import oracle
from tests.domain.circuit.oracle import CircuitOutcomes

NOW = 1_000_000_000
ON = BreakerSettings(circuit_check_enabled=True, statistics_update_enabled=True)


def some(**changes: Any) -> BreakerSettings:
    wanted = {"circuit_check_enabled": True, "min_queue_sample_count": 1, **changes}
    return BreakerSettings(**wanted)


def a_circuit(state: CircuitState = CircuitState.CLOSED, **changes: Any) -> Circuit:
    return Circuit(pattern="/playground/(.*)", state=state, **changes)


OPEN, HALF, CLOSED = CircuitState.OPEN, CircuitState.HALF_OPEN, CircuitState.CLOSED


@pytest.mark.parametrize(
    ("failures", "successes", "ratio"),
    [
        (0, 0, 0),
        (0, 5, 0),
        (3, 1, 75),
        (3, 4, 42),
        (7, 4, 63),
        (29, 71, 28),
        (57, 43, 56),
        (1, 0, 100),
    ],
)
def test_the_ratio_is_a_floored_percentage_as_in_gateleen(
    failures: int, successes: int, ratio: int
) -> None:
    assert OutcomeCounts(successes, failures).fail_ratio == ratio


def test_it_opens_when_there_are_enough_outcomes_and_enough_of_them_failed() -> None:
    settings = some(min_queue_sample_count=10, error_threshold_percentage=50)

    few = circuits.judge(a_circuit(), OutcomeCounts(0, 9), settings, now=NOW)
    good = circuits.judge(a_circuit(), OutcomeCounts(6, 4), settings, now=NOW)
    bad = circuits.judge(a_circuit(), OutcomeCounts(5, 5), settings, now=NOW)

    assert (few.state, few.fail_ratio) == (CLOSED, 100)
    assert good.state is CLOSED
    assert (bad.state, bad.opened_at, bad.generation) == (OPEN, NOW, 1)


def test_a_threshold_of_nothing_opens_without_a_failure() -> None:
    settings = some(error_threshold_percentage=0)

    assert circuits.judge(a_circuit(), OutcomeCounts(1, 0), settings, now=NOW).state is OPEN


@pytest.mark.parametrize("state", [OPEN, HALF])
def test_statistics_never_close_it_and_are_kept_in_every_state(state: CircuitState) -> None:
    after = circuits.judge(a_circuit(state, fail_ratio=100), OutcomeCounts(9, 1), some(), now=NOW)

    assert (after.state, after.fail_ratio) == (state, 10)


def test_only_what_lies_in_the_window_counts_its_older_edge_included() -> None:
    settings = some(entries_max_age_ms=100)
    samples = CircuitOutcomes({"a": NOW - 100, "b": NOW - 101}, {"c": NOW, "d": NOW - 101})

    assert oracle.tally(samples, settings, now=NOW) == OutcomeCounts(1, 1)


def test_a_request_counts_once_for_each_outcome() -> None:
    samples = CircuitOutcomes()
    for outcome in (RequestOutcome.FAILURE, RequestOutcome.FAILURE, RequestOutcome.SUCCESS):
        samples = oracle.note(samples, "a", outcome, now=NOW)

    assert oracle.tally(samples, some(), now=NOW) == OutcomeCounts(1, 1)


def test_the_oldest_outcomes_are_dropped_first() -> None:
    samples = CircuitOutcomes({"b": 1, "a": 1, "c": 2}, {"d": 5})

    trimmed = oracle.trim(samples, some(max_queue_sample_count=2))

    assert trimmed == CircuitOutcomes({"b": 1, "c": 2}, {"d": 5})


def test_requests_are_held_while_it_is_open_and_tried_while_it_is_half_open() -> None:
    assert circuits.permit(a_circuit(), ON) is Permit.GO
    assert circuits.permit(a_circuit(OPEN), ON) is Permit.HOLD
    assert circuits.permit(a_circuit(HALF), ON) is Permit.PROBE
    assert circuits.permit(None, ON) is Permit.GO


def test_nothing_is_held_while_the_check_is_off() -> None:
    assert circuits.permit(a_circuit(OPEN), BreakerSettings()) is Permit.GO


def test_with_a_single_probe_other_requests_are_held() -> None:
    settings = some(single_probe=True)

    assert circuits.permit(a_circuit(HALF), settings) is Permit.PROBE
    assert circuits.permit(a_circuit(HALF), settings, is_probed=True) is Permit.HOLD
    assert circuits.permit(a_circuit(HALF), ON, is_probed=True) is Permit.PROBE


def test_a_request_that_was_let_through_closes_or_reopens() -> None:
    half = a_circuit(HALF, fail_ratio=90, opened_at=1)

    closed = circuits.conclude_probe(half, RequestOutcome.SUCCESS, now=NOW)
    opened = circuits.conclude_probe(half, RequestOutcome.FAILURE, now=NOW)

    assert (closed.state, closed.fail_ratio, closed.opened_at) == (CLOSED, 0, None)
    assert (opened.state, opened.fail_ratio, opened.opened_at) == (OPEN, 90, NOW)


@pytest.mark.parametrize("state", [OPEN, CLOSED])
def test_late_outcomes_of_an_older_generation_are_ignored(state: CircuitState) -> None:
    circuit = a_circuit(state)

    assert circuits.conclude_probe(circuit, RequestOutcome.SUCCESS, now=NOW) == circuit
    assert circuits.conclude_probe(circuit, RequestOutcome.FAILURE, now=NOW) == circuit


def test_every_open_circuit_is_tried_at_the_next_tick_however_lately_it_opened() -> None:
    assert circuits.half_open(a_circuit(OPEN, opened_at=NOW), ON, now=NOW).state is HALF
    assert circuits.half_open(a_circuit(), ON, now=NOW).state is CLOSED


def test_growing_open_times_delay_the_next_probe_after_each_failure() -> None:
    settings = some(open_growth=2.0, max_open_ms=5_000, open_to_half_open=BreakerTask(True, 1_000))
    for reopened, wait in ((0, 1_000), (1, 2_000), (2, 4_000), (3, 5_000), (1_000, 5_000)):
        circuit = a_circuit(OPEN, opened_at=NOW, reopened=reopened)
        assert circuits.half_open(circuit, settings, now=NOW + wait - 1).state is OPEN
        assert circuits.half_open(circuit, settings, now=NOW + wait).state is HALF


@pytest.mark.parametrize(
    ("changes", "waits"),
    [
        ({}, (3_000, 3_000)),
        ({"open_growth": 2.0}, (3_000, 6_000)),
        ({"open_growth": 2.0, "max_open_ms": 4_000}, (3_000, 4_000)),
        ({"open_growth": 2.0, "max_open_ms": 1_000}, (3_000, 3_000)),
    ],
)
def test_a_circuit_stays_open_for_its_minimum_time(
    changes: dict[str, Any], waits: tuple[int, int]
) -> None:
    task = BreakerTask(True, 1_000)
    settings = some(min_open_ms=3_000, open_to_half_open=task, **changes)
    for reopened, wait in enumerate(waits):
        circuit = a_circuit(OPEN, opened_at=NOW, reopened=reopened)
        assert circuits.half_open(circuit, settings, now=NOW + wait - 1).state is OPEN
        assert circuits.half_open(circuit, settings, now=NOW + wait).state is HALF


def test_a_circuit_that_an_operator_opened_is_closed_only_by_an_operator() -> None:
    forced = circuits.force_open(a_circuit(), now=NOW)

    assert circuits.half_open(forced, ON, now=NOW + 10**9) == forced
    assert circuits.conclude_probe(forced, RequestOutcome.SUCCESS, now=NOW) == forced
    assert circuits.close(forced).state is CLOSED
    assert not circuits.close(forced).is_forced


def test_the_queue_that_waited_longest_is_the_next_probe_and_goes_to_the_back() -> None:
    held = [HeldQueue("b", 2), HeldQueue("a", 1), HeldQueue("c", 3)]

    first, rest = oracle.next_probe(held, now=NOW)
    second, _ = oracle.next_probe(rest, now=NOW)

    assert (first and first.queue, second and second.queue) == ("a", "b")
    assert HeldQueue("a", NOW) in rest
    assert oracle.in_order(held) == ["a", "b", "c"]
    assert oracle.next_probe([], now=NOW) == (None, [])


def test_queues_are_released_one_by_one_or_at_a_growing_rate() -> None:
    ramped = some(unlock_growth=2.0, max_unlocks=10)

    assert [circuits.count_released(ON, tick=i) for i in range(4)] == [1, 1, 1, 1]
    assert [circuits.count_released(ramped, tick=i) for i in range(6)] == [1, 2, 4, 8, 10, 10]
    assert circuits.count_released(ramped, tick=10**6) == 10


@pytest.mark.parametrize(
    ("status", "retries", "outcome", "is_done"),
    [
        (200, {}, RequestOutcome.SUCCESS, True),
        (299, {}, RequestOutcome.SUCCESS, True),
        (409, {}, RequestOutcome.SUCCESS, True),
        (300, {}, RequestOutcome.FAILURE, False),
        (404, {}, RequestOutcome.FAILURE, False),
        (500, {}, RequestOutcome.FAILURE, False),
        (None, {}, RequestOutcome.FAILURE, False),
        (404, {"404": "0"}, RequestOutcome.SUCCESS, True),
        (404, {"4xx": "0"}, RequestOutcome.SUCCESS, True),
        (404, {"404": "5", "4xx": "0"}, RequestOutcome.FAILURE, False),
        (404, {"404": "never"}, RequestOutcome.FAILURE, False),
        (500, {"4xx": "0"}, RequestOutcome.FAILURE, False),
    ],
)
def test_how_a_response_counts(
    status: int | None, retries: dict[str, str], outcome: RequestOutcome, is_done: bool
) -> None:
    result = circuits.outcome_of(status, retries, took_ms=10, settings=ON)

    assert result == (outcome, is_done)


def test_an_answer_that_takes_too_long_counts_as_a_failure_but_is_not_retried() -> None:
    settings = some(slow_call_ms=1_000)

    slow = circuits.outcome_of(200, {}, took_ms=1_000, settings=settings)
    quick = circuits.outcome_of(200, {}, took_ms=999, settings=settings)

    assert slow == (RequestOutcome.FAILURE, True)
    assert quick == (RequestOutcome.SUCCESS, True)


@pytest.mark.parametrize(
    "wrong",
    [
        {"error_threshold_percentage": 101},
        {"min_queue_sample_count": -1},
        {"entries_max_age_ms": 2**31},
        {"unlock_queues": BreakerTask(True, 0)},
        {"open_growth": 0.5},
        {"slow_call_ms": 0},
    ],
)
def test_settings_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest, match=next(iter(wrong))):
        check(BreakerSettings(**wrong))


@given(
    events=st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "c", "d"]),
            st.sampled_from(RequestOutcome),
            st.integers(0, 50),
        ),
        max_size=60,
    ),
    least=st.integers(0, 6),
    threshold=st.integers(0, 100),
    most=st.integers(1, 3),
)
def test_replayed_history_keeps_to_the_rules(
    events: list[tuple[str, RequestOutcome, int]], least: int, threshold: int, most: int
) -> None:
    settings = some(
        min_queue_sample_count=least,
        error_threshold_percentage=threshold,
        max_queue_sample_count=most,
        entries_max_age_ms=100,
    )
    circuit, samples, now = a_circuit(), CircuitOutcomes(), NOW
    for request_id, outcome, pause in events:
        now += pause
        before = circuit
        samples = oracle.note(samples, request_id, outcome, now=now)
        found = oracle.tally(samples, settings, now=now)
        samples = oracle.trim(samples, settings)
        circuit = circuits.judge(circuit, found, settings, now=now)
        assert len(samples.success) <= most
        assert len(samples.failure) <= most
        assert 0 <= circuit.fail_ratio <= 100
        is_due = found.total >= least and found.fail_ratio >= threshold
        assert (circuit.state is OPEN) == (before.state is OPEN or is_due)
        assert circuit.generation == before.generation + (circuit.state is not before.state)
