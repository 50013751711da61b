"""Overrides of a fleet's profile: taken from the store, without a change of the file."""

from __future__ import annotations

from penstock.domain.errors import FleetsRefused
from penstock.domain.scaling.recommendation import Profile, Sample
from tests.runtime.autoscaler.driver import AutoscalerDriver


def change(driver: AutoscalerDriver, **values: int) -> None:
    driver.scaling.change_profile("mail", lambda before: values or None).result()


def samples_needed(driver: AutoscalerDriver) -> int:
    """Of the last decision."""
    decision = driver.status().decision
    assert decision is not None
    assert decision.inputs is not None
    return decision.inputs.samples_needed


def test_overrides_take_effect_with_the_next_refresh_and_keep_the_workers(
    driver: AutoscalerDriver,
) -> None:
    driver.load(Sample(ready=10, consume_rate=1.0))
    driver.start()
    driver.run()
    assert driver.status().file_profile == Profile(samples_needed=2, backlog_goal_s=1)

    change(driver, samples_needed=5)
    driver.run()

    assert samples_needed(driver) == 5
    assert driver.made == ["mail"]  # its workers are managed as before
    change(driver)
    driver.run()
    assert samples_needed(driver) == 2


def test_an_invalid_file_does_not_delay_overrides(driver: AutoscalerDriver) -> None:
    driver.load(Sample(ready=10, consume_rate=1.0))
    driver.start()
    driver.run()
    driver.text.fleets = FleetsRefused("not TOML")
    change(driver, samples_needed=7)

    driver.run()

    assert samples_needed(driver) == 7
