"""The formulas give the numbers of gateleen's documentation."""

import pytest

from penstock.domain.circuit.settings import BreakerSettings
from penstock.domain.insights.replays import NOW
from penstock.domain.limits import DAY, MINUTE, SECOND
from penstock.pipeline.replays.tuning import (
    candidates,
    entries_max_age_ms,
    max_queue_sample_count,
    survival,
)


@pytest.mark.parametrize(
    ("per_minute", "minutes", "active"), [(600, 13, 9_800), (650, 12, 9_800), (1000, 8, 10_000)]
)
def test_the_survival_is_that_of_gateleens_example(per_minute, minutes, active):
    lives = survival(capacity=10_000, load=2_000, per_minute=per_minute)

    assert lives is not None
    assert (lives.minutes, lives.active) == (minutes, active)


def test_a_server_without_arrivals_survives():
    assert survival(capacity=10_000, load=2_000, per_minute=0) is None


def test_a_server_without_room_does_not_survive():
    lives = survival(capacity=1_000, load=2_000, per_minute=600)

    assert lives is not None
    assert lives.ms == 0


def test_the_age_is_about_half_the_survival_as_in_gateleens_example():
    lives = survival(capacity=10_000, load=2_000, per_minute=600)

    assert entries_max_age_ms(lives) == 300_000


def test_the_age_is_never_zero_and_never_more_than_a_day():
    assert entries_max_age_ms(survival(capacity=1, load=2, per_minute=1)) == 10 * SECOND
    assert entries_max_age_ms(None) == DAY


def test_the_sample_count_exceeds_the_arrivals_as_in_gateleens_example():
    assert max_queue_sample_count(600, 5 * MINUTE, least=100) == 4_000


def test_the_sample_count_is_at_least_the_minimum():
    assert max_queue_sample_count(0.1, MINUTE, least=100) == 100


def test_the_candidates_are_the_settings_in_force_and_ages_near_the_formulas():
    lives = survival(capacity=10_000, load=2_000, per_minute=600)
    found = list(candidates(BreakerSettings(), lives, per_minute=600))

    assert found[0].name == NOW
    assert found[0].settings.entries_max_age_ms == DAY
    ages = {one.settings.entries_max_age_ms: one.off_by for one in found[1:]}
    assert ages == {2 * MINUTE: 1, 5 * MINUTE: 0, 10 * MINUTE: 1}
    assert {one.settings.error_threshold_percentage for one in found[1:]} == {50, 70, 80, 90}
    assert all(one.settings.open_to_half_open.enabled for one in found)
