"""The autoscaler from tick to tick: it reads, decides, acts, and records the reason."""

from __future__ import annotations

import pytest

from penstock.domain.scaling.fleet_schedule import Period
from penstock.domain.scaling.recommendation import Replicas, Sample
from tests.runtime.autoscaler.driver import BUSY, QUIET, AutoscalerDriver, fleet

# ---- acting


@pytest.fixture
def backend() -> str:
    """Decisions are not in the store; test_leading runs on both."""
    return "sqlite"


def test_more_workers_are_started_when_more_are_needed(driver: AutoscalerDriver) -> None:
    driver.start()
    driver.managers["mail"].running = 1
    driver.load(BUSY)

    driver.run(2)

    assert driver.managers["mail"].asked == [6]
    assert driver.decisions() == [(5, "backlog", True)]


def test_fewer_workers_stay_when_fewer_are_needed(driver: AutoscalerDriver) -> None:
    driver.start()
    driver.managers["mail"].running = 4

    driver.run(2)

    assert driver.managers["mail"].asked == [0]
    assert driver.decisions() == [(-4, "idle", True)]


def test_limits_follow_the_schedule_of_the_fleet(driver: AutoscalerDriver) -> None:
    """It is noon."""
    lunch = Period(from_="11:30", to="12:01", min=4)
    evening = Period(from_="12:01", to="18:00", max=2)
    driver.start(fleet("mail", min=1, max=9, schedule=(lunch, evening), steady_ms=0))

    driver.tick()
    at_noon = driver.managers["mail"].running, driver.status().min, driver.status().max
    driver.store_driver.clock.advance(seconds=60)
    driver.load(Sample(ready=100, consume_rate=4.0))
    driver.run(2)
    then = driver.managers["mail"].running, driver.status().min, driver.status().max

    assert at_noon == (4, 4, 9)
    assert then == (2, 1, 2)
    assert [reason for _, reason, _ in driver.decisions()][:2] == ["below_minimum", "above_maximum"]


def test_the_first_message_starts_the_first_worker_at_once(driver: AutoscalerDriver) -> None:
    driver.start()
    driver.load(Sample(ready=1))

    driver.tick()

    assert driver.managers["mail"].running == 1


def test_nothing_is_done_without_load(driver: AutoscalerDriver) -> None:
    driver.start()
    driver.managers["mail"].running = 2
    driver.load(Sample(ready=2, consume_rate=2.0))

    driver.run(10)

    assert driver.managers["mail"].asked == []
    assert driver.decisions() == []
    assert driver.status().decision.reason in ("steady", "gathering")  # type: ignore[union-attr]


def test_a_fleet_is_observed_once_per_interval(driver: AutoscalerDriver) -> None:
    driver.start(fleet("mail", interval_ms=10_000))

    next_at = [driver.tick()]
    driver.store_driver.clock.advance(seconds=9)
    next_at.append(driver.tick())
    driver.store_driver.clock.advance(seconds=1)
    driver.tick()

    assert driver.loads["own"].reads == 2
    assert all(at > driver.store_driver.now - 10_000 for at in next_at)


def test_workers_are_tended_at_each_run(driver: AutoscalerDriver) -> None:
    driver.start()

    driver.run(3)

    assert driver.managers["mail"].tended == 3


def test_the_limits_of_a_fleet_are_kept(driver: AutoscalerDriver) -> None:
    driver.start(fleet("mail", min=2, max=3))
    driver.load(BUSY)

    driver.run(8)

    assert driver.managers["mail"].running == 3
    assert max(driver.managers["mail"].asked) == 3
    assert (0, "at_maximum", False) in driver.decisions()


def test_a_fleet_below_its_minimum_comes_first(driver: AutoscalerDriver) -> None:
    driver.start(fleet("mail", min=0), fleet("vital", min=2, queue="vital"))
    driver.managers["mail"].running = 10
    driver.managers["vital"].said = Replicas(running=1, requested=1)  # no room for a second one
    driver.load(BUSY)

    driver.run(2)

    assert driver.managers["mail"].running == 9
    assert (-1, "others_first", True) in driver.decisions()


def test_a_fleet_that_cannot_be_scaled_does_not_hold_up_the_others(
    driver: AutoscalerDriver,
) -> None:
    driver.start(fleet("broken", min=2), fleet("mail"))
    driver.managers["broken"].error = RuntimeError("no such machine")
    driver.managers["mail"].running = 1
    driver.load(BUSY)

    driver.run(2)

    assert driver.managers["mail"].running == 6


def test_after_scaling_a_fleet_cools_down(driver: AutoscalerDriver) -> None:
    driver.start(fleet("mail", cooldown_runs=3))
    driver.managers["mail"].running = 1
    driver.load(BUSY)

    driver.run(2)
    reads = []
    for _ in range(4):
        driver.run()
        reads.append(driver.status().decision.reason)  # type: ignore[union-attr]

    assert reads == ["cooling_down"] * 3 + ["gathering"]


# ---- dry runs


def test_a_dry_run_reports_once_what_it_would_do_and_does_nothing(driver: AutoscalerDriver) -> None:
    driver.start(is_dry=True)
    driver.managers["mail"].running = 1
    driver.load(BUSY)

    driver.run(8)

    assert driver.managers["mail"].asked == []
    assert driver.managers["mail"].tended == 0
    [fact] = driver.facts("scaling_decision", "mail")
    assert (fact["acted"], fact["dry_run"], fact["change"]) == (False, True, 5)
    assert driver.status().is_dry


def test_a_dry_run_does_not_overwrite_the_status_of_a_real_run(driver: AutoscalerDriver) -> None:
    driver.start()
    driver.tick()
    dry = driver.another(holder="dry", is_dry=True)

    driver.tick(dry)

    assert driver.status().seen_by == "one"


# ---- reporting


def test_a_decision_is_a_fact_with_its_reason_and_all_its_inputs(driver: AutoscalerDriver) -> None:
    driver.start(fleet("mail", max=3))
    driver.managers["mail"].running = 1
    driver.load(BUSY)

    driver.run(2)

    [fact] = driver.facts("scaling_decision", "mail")
    assert (fact["change"], fact["wanted"], fact["reason"]) == (2, 3, "at_maximum")
    assert (fact["recommended"], fact["because"]) == (5, "backlog")
    assert (fact["acted"], fact["dry_run"], fact["by"]) == (True, False, "one")
    inputs = fact["inputs"]
    assert (inputs["backlog"], inputs["consume_rate"], inputs["needed"]) == (100, 1.0, 100)
    assert (inputs["running"], inputs["samples"], inputs["backlog_goal_s"]) == (1, 2, 1)


def test_any_node_returns_the_status_of_a_fleet(driver: AutoscalerDriver) -> None:
    driver.start(fleet("mail", max=3))
    driver.managers["mail"].running = 1
    driver.load(BUSY)
    driver.run(2)

    status = driver.status()

    assert (status.group, status.queue, status.kind, status.max) == (
        "default",
        "mail",
        "external",
        3,
    )
    assert status.sample == BUSY
    assert status.replicas == Replicas(running=1, requested=1)
    assert status.decision is not None
    assert status.decision.reason == "at_maximum"
    assert status.made is not None
    assert (status.made.change, status.made.is_done) == (2, True)
    assert status.wanted == 3
    assert driver.scaling.wanted("mail").result() == 3


def test_nothing_is_written_between_two_observations(driver: AutoscalerDriver) -> None:
    driver.start()
    driver.tick()
    before = driver.store_driver.read(lambda s: s.documents.find("scaling/mail"))

    driver.store_driver.clock.advance(seconds=1)
    driver.tick()

    assert driver.store_driver.read(lambda s: s.documents.find("scaling/mail")) == before


def test_quiet_runs_leave_no_facts(driver: AutoscalerDriver) -> None:
    driver.start()
    driver.load(QUIET)

    driver.run(30)

    assert driver.facts("scaling_decision") == []
