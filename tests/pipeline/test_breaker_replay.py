"""Calls replayed through a circuit, and its openings judged with hindsight."""

import random

import pytest
from msgspec.structs import replace

from penstock.domain.circuit.circuit import RequestOutcome
from penstock.domain.circuit.settings import BreakerSettings, BreakerTask
from penstock.domain.limits import MINUTE, SECOND
from penstock.pipeline.replays.breaker import (
    BreakerReplay,
    Interval,
    Replay,
    ReplayWindow,
    RouteCall,
    evaluate,
)
from tests.domain.circuit import oracle
from tests.domain.circuit.oracle import CircuitOutcomes

SETTINGS = BreakerSettings(
    circuit_check_enabled=True,
    statistics_update_enabled=True,
    error_threshold_percentage=80,
    entries_max_age_ms=5 * MINUTE,
    min_queue_sample_count=4,
    open_to_half_open=BreakerTask(True, 2 * MINUTE),
)
HOUR = Interval(0, 60 * MINUTE)


def calls(*said: tuple[int, str]) -> list[RouteCall]:
    """At seconds: x fails, . succeeds."""
    return [RouteCall(at * SECOND, n, sign == "x") for n, (at, sign) in enumerate(said)]


def replay(said: list[RouteCall], settings: BreakerSettings, within: Interval) -> Replay:
    found = BreakerReplay(settings, within)
    found.play(said)
    return found.result()


def every_10s(signs: str, *, start: int = 0) -> list[RouteCall]:
    return calls(*((start + 10 * n, sign) for n, sign in enumerate(signs)))


def test_it_opens_after_enough_failures_and_closes_after_the_first_successful_probe():
    found = replay(every_10s("xxxx" + "x" * 8 + "......"), SETTINGS, HOUR)

    # Half-open at 2 minutes; the call of that moment succeeds.
    assert found.opens == (Interval(30 * SECOND, 120 * SECOND),)
    assert (found.held, found.failed, found.reopened) == (8, 4, 0)


def test_a_failed_probe_opens_it_again_until_the_next_tick():
    found = replay(every_10s("x" * 13 + "x" * 11 + "..."), SETTINGS, HOUR)

    assert found.opens == (Interval(30 * SECOND, 240 * SECOND),)
    assert found.reopened == 1


def test_a_circuit_that_never_closes_is_open_until_the_end():
    found = replay(every_10s("xxxx"), SETTINGS, HOUR)

    assert found.opens == (Interval(30 * SECOND, HOUR.to_at),)


def test_old_failures_do_not_count():
    said = calls((0, "x"), (1, "x"), (2, "x"), (400, "x"))

    assert replay(said, SETTINGS, HOUR).opens == ()


def test_after_closing_the_window_is_empty():
    found = replay(every_10s("xxxx" + "x" * 8 + "." + "xxx"), SETTINGS, HOUR)

    # Three failures and no samples from before: too few to judge.
    assert len(found.opens) == 1


def test_calls_before_the_day_fill_the_window_and_are_not_counted():
    found = replay(every_10s("xxxx"), SETTINGS, Interval(25 * SECOND, HOUR.to_at))

    assert found.opens == (Interval(30 * SECOND, HOUR.to_at),)
    assert found.failed == 1


@pytest.mark.parametrize("seed", range(20))
def test_the_window_counts_as_the_broker_does(seed):
    dice = random.Random(seed)
    settings = replace(SETTINGS, entries_max_age_ms=50, max_queue_sample_count=5)
    window, samples, now = ReplayWindow(settings), CircuitOutcomes(), 0
    for _ in range(200):
        now += dice.randrange(1, 12)
        call = RouteCall(now, dice.randrange(12), dice.random() < 0.5)
        outcome = RequestOutcome.FAILURE if call.is_failure else RequestOutcome.SUCCESS
        samples = oracle.note(samples, str(call.message_no), outcome, now=now)

        assert window.note(call) == oracle.tally(samples, settings, now=now)

        samples = oracle.trim(samples, settings)
        window.trim()


def test_calls_in_parts_give_the_same_result_as_all_at_once():
    said = every_10s("xxxx" + "x" * 8 + "......")
    whole, parts = replay(said, SETTINGS, HOUR), BreakerReplay(SETTINGS, HOUR)

    for begin in range(0, len(said), 5):
        parts.play(said[begin : begin + 5])

    assert parts.result() == whole
    assert whole.opens


def test_an_outage_is_detected_if_the_circuit_opens_and_missed_otherwise():
    said = every_10s("x" * 12)
    real = [Interval(0, 110 * SECOND)]

    found = evaluate(replay(said, SETTINGS, HOUR), real, HOUR, survival_ms=None)
    deaf = replace(SETTINGS, min_queue_sample_count=100)
    missed = evaluate(replay(said, deaf, HOUR), real, HOUR, survival_ms=None)

    assert (found.outages, found.missed, found.delays_ms) == (1, 0, (30 * SECOND,))
    assert (missed.outages, missed.missed, missed.delays_ms) == (1, 1, ())


def test_an_opening_outside_of_outages_is_false_and_so_is_its_time():
    said = every_10s("xxxx" + "." * 20)

    found = evaluate(replay(said, SETTINGS, HOUR), [], HOUR, survival_ms=None)

    assert (found.opens, found.false_opens) == (1, 1)
    assert (found.open_ms, found.false_open_ms) == (90 * SECOND, 90 * SECOND)


@pytest.mark.parametrize(("survival_s", "unsafe"), [(30, 1), (31, 0)])
def test_an_outage_is_unsafe_if_the_server_fails_before_the_circuit_opens(survival_s, unsafe):
    said = every_10s("x" * 12)
    real = [Interval(0, 110 * SECOND)]

    found = evaluate(replay(said, SETTINGS, HOUR), real, HOUR, survival_ms=survival_s * SECOND)

    assert found.unsafe == unsafe
