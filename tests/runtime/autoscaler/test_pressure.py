"""Under pressure: fleets that yield, alerts, open circuits, and fleets that make room."""

from __future__ import annotations

import pytest

from penstock.domain.scaling.fleet import AlertSpec
from penstock.domain.scaling.fleet_run import CircuitsState
from penstock.domain.scaling.pressure import Pressure
from penstock.domain.scaling.recommendation import Replicas, Sample
from tests.runtime.autoscaler.driver import BUSY, AutoscalerDriver, fleet


@pytest.fixture
def backend() -> str:
    """Decisions are not in the store; test_leading runs on both."""
    return "sqlite"


@pytest.mark.parametrize(
    ("found", "order", "level"),
    [
        (Pressure(memory_percent=91.0), 5, 3),
        (Pressure(disk_free_mb=399), 1, 1),
        (Pressure(memory_percent=75.0, disk_free_mb=150), 3, 2),
    ],
)
def test_under_pressure_a_fleet_yields_all_its_workers_and_an_alert_is_sent(
    driver: AutoscalerDriver, found: Pressure, order: int, level: int
) -> None:
    driver.start(fleet("mail", yield_order=order, min=2), fleet("vital"))
    driver.managers["mail"].running = 7
    driver.managers["vital"].running = 7
    driver.load(BUSY)
    driver.loads["own"].found = found

    driver.tick()

    assert driver.managers["mail"].asked == [0]
    assert driver.managers["vital"].asked == []
    assert driver.decisions() == [(-7, "pressure", True)]
    assert driver.status().level == level
    assert driver.alerts


def test_when_the_pressure_is_over_the_fleet_comes_back(driver: AutoscalerDriver) -> None:
    driver.start(fleet("mail", yield_order=1))
    driver.managers["mail"].running = 3
    driver.load(BUSY)
    driver.loads["own"].found = Pressure(memory_percent=95.0)
    driver.run(5)
    assert driver.managers["mail"].running == 0

    driver.loads["own"].found = Pressure(memory_percent=50.0)
    driver.run(2)

    assert driver.managers["mail"].running == 1


def test_others_may_grow_while_one_is_stopped_by_pressure_below_its_minimum(
    driver: AutoscalerDriver,
) -> None:
    driver.start(fleet("mail", yield_order=1, min=3), fleet("vital", max=10))
    driver.managers["vital"].running = 8
    driver.load(BUSY)
    driver.loads["own"].found = Pressure(memory_percent=75.0)

    driver.run(2)

    assert driver.managers["vital"].running == 10


def test_alerts_are_sent_once_per_interval_also_without_a_fleet_that_yields(
    driver: AutoscalerDriver,
) -> None:
    driver.start()
    driver.loads["own"].found = Pressure(memory_percent=71.0, disk_free_mb=300)

    driver.run(120)  # twenty minutes

    assert [alert.what for alert in driver.alerts] == ["memory", "disk"]
    driver.run()
    assert len(driver.alerts) == 4
    assert {fact["what"] for fact in driver.facts("scaling_alert", "own")} == {"memory", "disk"}


def test_a_new_leader_knows_which_alerts_were_sent(driver: AutoscalerDriver) -> None:
    driver.start()
    driver.loads["own"].found = Pressure(memory_percent=71.0)
    driver.tick()
    driver.autoscaler.close()

    driver.tick(driver.another(holder="two"))

    assert len(driver.alerts) == 1


def test_alerts_can_be_turned_off(driver: AutoscalerDriver) -> None:
    driver.start(alerts=AlertSpec(enabled=False))
    driver.loads["own"].found = Pressure(memory_percent=99.0)

    driver.run(3)

    assert driver.alerts == []


def test_no_worker_is_started_while_a_circuit_is_open(driver: AutoscalerDriver) -> None:
    driver.start(fleet("mail", routes=("smtp",)))
    driver.managers["mail"].running = 1
    driver.load(BUSY)
    driver.way = CircuitsState.OPEN
    driver.run(6)
    assert driver.managers["mail"].asked == []
    assert driver.decisions() == [(0, "circuit_open", False)]

    driver.way = CircuitsState.FREE
    driver.run(2)

    assert driver.managers["mail"].asked == [6]


def test_workers_that_do_not_appear_have_another_fleet_make_room(driver: AutoscalerDriver) -> None:
    driver.start(
        fleet("mail", patience_ms=60_000),
        fleet("rich", source="rich", min=2, cooldown_down_runs=1_000),
    )
    driver.managers["mail"].running = 1
    driver.managers["rich"].running = 12
    driver.load(Sample(ready=10, consume_rate=12.0), "rich")  # ten would do
    driver.load(BUSY)
    driver.run(2)
    assert (driver.managers["mail"].asked, driver.managers["rich"].asked) == ([6], [10])

    driver.managers["mail"].said = Replicas(running=1, requested=6)  # there is no room for them
    driver.run(6)

    assert driver.managers["rich"].asked == [10, 9]
    assert driver.decisions("rich")[-1] == (-1, "making_room", True)
    assert driver.facts("scaling_trouble", "mail")[0]["code"] == "replicas_missing"


def test_a_worker_that_exits_after_all_had_appeared_takes_none_from_other_fleets(
    driver: AutoscalerDriver,
) -> None:
    driver.start(
        fleet("mail", patience_ms=5_000),
        fleet("rich", source="rich", min=2, cooldown_down_runs=1_000),
    )
    driver.managers["mail"].running, driver.managers["rich"].running = 1, 12
    driver.load(Sample(ready=10, consume_rate=12.0), "rich")  # ten would do
    driver.load(BUSY)
    driver.run(3)
    assert (driver.managers["mail"].running, driver.managers["rich"].running) == (6, 10)

    driver.load(Sample(ready=6, consume_rate=6.0))
    driver.managers["mail"].running = 5
    driver.run(10)

    assert driver.facts("scaling_trouble") == []
    assert driver.managers["rich"].asked == [10]


def test_no_fleet_makes_room_for_one_that_is_not_worse_off(driver: AutoscalerDriver) -> None:
    driver.start(fleet("mail", patience_ms=60_000), fleet("poor", source="poor", max=1))
    driver.managers["mail"].running = driver.managers["poor"].running = 1
    driver.load(BUSY)
    driver.load(BUSY, "poor")
    driver.run(2)
    driver.managers["mail"].said = Replicas(running=1, requested=6)

    driver.run(8)

    assert driver.managers["poor"].asked == []
