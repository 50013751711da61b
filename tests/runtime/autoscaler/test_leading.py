"""One of several autoscalers acts; fleets follow changes of their file."""

from __future__ import annotations

import pytest

from penstock.domain.errors import FleetsRefused
from penstock.domain.scaling.fleet import Processes
from penstock.domain.scaling.recommendation import Sample
from tests.fakes import FakeReplicas
from tests.runtime.autoscaler.driver import BUSY, AutoscalerDriver, Slow, fleet


def test_one_of_two_autoscalers_acts(driver: AutoscalerDriver) -> None:
    first = driver.start(fleet("mail", min=1))
    second = driver.another(holder="two")

    for _ in range(10):
        driver.tick(first)
        driver.tick(second)
        assert driver.status().seen_by == "one"
        driver.store_driver.clock.advance(seconds=5)

    assert driver.managers["mail"].asked == [1]


def test_when_the_leader_is_gone_the_other_continues_where_it_ended(
    driver: AutoscalerDriver,
) -> None:
    first = driver.start(fleet("mail", interval_ms=30_000))
    driver.managers["mail"].running = 1
    driver.load(BUSY)
    driver.tick(first)  # one sample of two
    second = driver.another(holder="two")
    driver.tick(second)

    driver.store_driver.clock.advance(seconds=30)  # nothing is heard of the first
    driver.tick(second)

    assert driver.managers["mail"].asked == [6]
    assert driver.status().seen_by == "two"
    driver.tick(first)
    driver.store_driver.clock.advance(seconds=30)
    driver.tick(first)
    assert driver.managers["mail"].asked == [6]


def test_a_leader_that_ends_releases_its_lease_at_once(driver: AutoscalerDriver) -> None:
    first = driver.start()
    driver.tick(first)
    first.close()
    second = driver.another(holder="two")

    driver.tick(second)

    assert driver.status().seen_by == "two"
    assert driver.loads["own"].is_closed
    assert driver.managers["mail"].is_closed


def test_after_an_orderly_restart_workers_are_back_within_two_intervals(
    driver: AutoscalerDriver,
) -> None:
    first = driver.start(fleet("mail", min=1))
    driver.run(3)  # the worker was asked for, and was seen
    first.close()
    driver.managers["mail"].running = 0  # as processes are drained with their autoscaler

    driver.autoscaler = driver.another(holder="two")
    driver.run(2)

    assert driver.managers["mail"].running == 1
    assert driver.facts("scaling_trouble") == []


def test_a_leader_whose_lease_expired_does_not_act_on_what_it_knew(
    driver: AutoscalerDriver,
) -> None:
    background = Slow("mail")
    first = driver.start(background=background)
    driver.load(Sample(ready=1))
    driver.tick(first)  # it asks
    driver.store_driver.clock.advance(seconds=31)
    driver.tick(driver.another(holder="two"))
    assert driver.managers["mail"].asked == [1]

    background.answer()
    driver.tick(first)

    assert driver.managers["mail"].asked == [1]


def test_groups_do_not_know_of_each_other(driver: AutoscalerDriver) -> None:
    first = driver.start(fleet("mail", min=1), group="eu")
    driver.tick(first)
    second = driver.start(fleet("post", min=1), group="us", holder="two")
    driver.tick(second)

    assert driver.managers["mail"].asked == [1]
    assert driver.managers["post"].asked == [1]
    assert [status.name for status in driver.scaling.all().result()] == ["mail", "post"]


def test_fleets_come_and_go_with_the_file(driver: AutoscalerDriver) -> None:
    driver.start(fleet("mail", min=1))
    driver.run()

    driver.text.fleets = driver.fleets(fleet("post", min=2))
    driver.run(2)

    assert driver.managers["post"].running == 2
    assert driver.managers["mail"].is_closed
    assert [status.name for status in driver.scaling.all().result()] == ["post"]


def test_a_fleet_that_changed_starts_over_and_keeps_its_workers(driver: AutoscalerDriver) -> None:
    driver.start(fleet("mail", min=1))
    driver.load(Sample(ready=1, consume_rate=1.0))
    driver.run(2)

    driver.text.fleets = driver.fleets(fleet("mail", min=3))
    driver.run(2)

    assert driver.managers["mail"].running == 3
    assert driver.made == ["mail"]
    assert not driver.managers["mail"].is_closed


def test_a_fleet_that_did_not_change_does_not_start_over(driver: AutoscalerDriver) -> None:
    driver.start(fleet("mail"))
    driver.managers["mail"].running = 1
    driver.load(BUSY)
    driver.run(1)

    driver.text.fleets = driver.fleets(fleet("mail"), fleet("post"))
    driver.run(1)

    assert driver.managers["mail"].asked == [6]


def test_another_way_to_run_the_workers_creates_another_manager(driver: AutoscalerDriver) -> None:
    driver.start(fleet("mail"))
    driver.run()
    old = driver.managers.pop("mail")

    driver.text.fleets = driver.fleets(fleet("mail", replicas=Processes(app="shop:app")))
    driver.run()

    assert old.is_closed
    assert isinstance(driver.managers["mail"], FakeReplicas)
    assert driver.managers["mail"] is not old


def test_a_file_that_is_not_valid_leaves_the_previous_one_in_use(
    driver: AutoscalerDriver, caplog: pytest.LogCaptureFixture
) -> None:
    driver.start(fleet("mail", min=1))
    driver.run()

    driver.text.fleets = FleetsRefused("no TOML")
    driver.run(5)

    assert driver.status().min == 1
    assert caplog.text.count("the previous one stays in use: no TOML") == 1
