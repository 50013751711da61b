"""Rules of durable steps, and what ends a wait."""

from __future__ import annotations

import pytest

from penstock.domain.errors import InvalidRequest, TooLarge
from penstock.domain.limits import DEFAULT_LIMITS, MINUTE, Limits
from penstock.domain.message import step
from penstock.domain.message.lifecycle import State
from penstock.domain.message.outcome import Suspended, suspension_of
from penstock.domain.message.step import LONGEST_WAIT_MS, RecordedStep, Signal, Wait
from tests.clocks import NOON
from tests.factories import a_message_in

SIGNAL = Signal("approved", '{"by":"ada"}', NOON, NOON + MINUTE)


def a_wait(**fields: int | None) -> Wait:
    return Wait("approved", 3, "wait", NOON, **fields)


def test_a_wait_ends_by_its_signal_even_if_its_timeout_is_over_too():
    wait = a_wait(until_at=NOON)

    assert step.outcome_of(wait, SIGNAL, now=NOON) == '{"body":{"by":"ada"}}'
    assert step.outcome_of(wait, None, now=NOON) == '{"timed_out":true}'
    assert step.outcome_of(wait, None, now=NOON - 1) is None
    assert step.outcome_of(a_wait(), None, now=NOON + MINUTE) is None


def test_a_wait_is_snoozed_until_its_timeout():
    assert step.wait_ms(a_wait(until_at=NOON + MINUTE), now=NOON) == MINUTE
    assert step.wait_ms(a_wait(until_at=NOON - 1), now=NOON) == 0
    assert step.wait_ms(a_wait(), now=NOON) == LONGEST_WAIT_MS


@pytest.mark.parametrize("state", State)
def test_only_a_message_snoozed_under_the_armed_lease_is_woken(state):
    message = a_message_in(state, lease_no=2)

    assert step.is_woken(a_wait(lease_no=2), message) is (state is State.WAITING)
    assert not step.is_woken(a_wait(lease_no=1), message)
    assert not step.is_woken(a_wait(), message)


def test_a_sleep_counts_from_its_step():
    slept = RecordedStep(1, "sleep", step.slept(MINUTE), NOON)

    assert step.sleep_left_ms(slept, now=NOON + 1) == MINUTE - 1
    assert step.sleep_left_ms(slept, now=NOON + MINUTE) == 0
    with pytest.raises(InvalidRequest, match="'charge' is recorded, but not as a sleep"):
        step.sleep_left_ms(RecordedStep(1, "charge", '{"paid":1}', NOON), now=NOON)


@pytest.mark.parametrize("name", ["", "a\x00b", "x" * 300])
def test_names_of_steps_and_signals_are_checked(name):
    with pytest.raises(InvalidRequest, match="the name of a step has 1 to 288 characters"):
        step.check_step_name(name, DEFAULT_LIMITS)
    with pytest.raises(InvalidRequest, match="the name of a signal has 1 to 256 characters"):
        step.check_signal_name(name, DEFAULT_LIMITS)


def test_the_size_of_an_outcome_is_limited_in_bytes():
    limits = Limits(max_step_bytes=4)

    step.check_outcome('"éä"', Limits(max_step_bytes=6))
    with pytest.raises(TooLarge, match=r"6 bytes as JSON, more than limits\.max_step_bytes \(4\)"):
        step.check_outcome('"éä"', limits)


def test_a_suspension_is_found_in_the_group_that_a_task_group_raises():
    soon, late = Suspended(1, signal="a"), Suspended(2)

    assert suspension_of(soon) is soon
    assert suspension_of(BaseExceptionGroup("", [late, BaseExceptionGroup("", [soon])])) is soon
    assert suspension_of(BaseExceptionGroup("", [soon, ValueError("broken")])) is None
    assert suspension_of(ValueError("broken")) is None
    assert suspension_of(None) is None
