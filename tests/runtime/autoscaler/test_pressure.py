"""Under pressure: fleets that yield, alerts, open circuits, and room for those worse off."""

from __future__ import annotations

import pytest

from penstock.domain.scaling.fleet import AlertSpec
from penstock.domain.scaling.fleet_run import Way
from penstock.domain.scaling.pressure import Pressure
from penstock.domain.scaling.recommendation import Replicas, Sample
from tests.runtime.autoscaler.yard import BUSY, Yard, fleet


@pytest.mark.parametrize(
    ("found", "order", "level"),
    [
        (Pressure(memory_percent=91.0), 5, 3),
        (Pressure(disk_free_mb=399), 1, 1),
        (Pressure(memory_percent=75.0, disk_free_mb=150), 3, 2),
    ],
)
def test_under_pressure_a_fleet_yields_all_its_workers_and_somebody_is_told(
    yard: Yard, found: Pressure, order: int, level: int
) -> None:
    yard.start(fleet("mail", yield_order=order, min=2), fleet("vital"))
    yard.managers["mail"].running = 7
    yard.managers["vital"].running = 7
    yard.load(BUSY)
    yard.loads["own"].found = found

    yard.tick()

    assert yard.managers["mail"].asked == [0]
    assert yard.managers["vital"].asked == []
    assert yard.decisions() == [(-7, "pressure", True)]
    assert yard.status().level == level
    assert yard.alerts


def test_when_the_pressure_is_over_the_fleet_comes_back(yard: Yard) -> None:
    yard.start(fleet("mail", yield_order=1))
    yard.managers["mail"].running = 3
    yard.load(BUSY)
    yard.loads["own"].found = Pressure(memory_percent=95.0)
    yard.run(5)
    assert yard.managers["mail"].running == 0

    yard.loads["own"].found = Pressure(memory_percent=50.0)
    yard.run(2)

    assert yard.managers["mail"].running == 1


def test_others_may_grow_while_one_is_stopped_by_pressure_below_its_minimum(yard: Yard) -> None:
    yard.start(fleet("mail", yield_order=1, min=3), fleet("vital", max=10))
    yard.managers["vital"].running = 8
    yard.load(BUSY)
    yard.loads["own"].found = Pressure(memory_percent=75.0)

    yard.run(2)

    assert yard.managers["vital"].running == 10


def test_alerts_are_told_once_in_their_time_also_without_a_fleet_that_yields(yard: Yard) -> None:
    yard.start()
    yard.loads["own"].found = Pressure(memory_percent=71.0, disk_free_mb=300)

    yard.run(120)  # twenty minutes

    assert [alert.what for alert in yard.alerts] == ["memory", "disk"]
    yard.run()
    assert len(yard.alerts) == 4
    assert {fact["what"] for fact in yard.facts("scaling_alert", "own")} == {"memory", "disk"}


def test_whoever_takes_over_knows_which_alerts_were_told(yard: Yard) -> None:
    yard.start()
    yard.loads["own"].found = Pressure(memory_percent=71.0)
    yard.tick()
    yard.autoscaler.close()

    yard.tick(yard.another(holder="two"))

    assert len(yard.alerts) == 1


def test_alerts_can_be_turned_off(yard: Yard) -> None:
    yard.start(alerts=AlertSpec(enabled=False))
    yard.loads["own"].found = Pressure(memory_percent=99.0)

    yard.run(3)

    assert yard.alerts == []


def test_nobody_is_started_into_an_open_circuit(yard: Yard) -> None:
    yard.start(fleet("mail", routes=("smtp",)))
    yard.managers["mail"].running = 1
    yard.load(BUSY)
    yard.way = Way.OPEN
    yard.run(6)
    assert yard.managers["mail"].asked == []
    assert yard.decisions() == [(0, "circuit_open", False)]

    yard.way = Way.FREE
    yard.run(2)

    assert yard.managers["mail"].asked == [6]


def test_workers_that_do_not_appear_have_another_fleet_make_room(yard: Yard) -> None:
    yard.start(
        fleet("mail", patience_ms=60_000),
        fleet("rich", source="rich", min=2, cooldown_down_runs=1_000),
    )
    yard.managers["mail"].running = 1
    yard.managers["rich"].running = 12
    yard.load(Sample(ready=10, consume_rate=12.0), "rich")  # ten would do
    yard.load(BUSY)
    yard.run(2)
    assert (yard.managers["mail"].asked, yard.managers["rich"].asked) == ([6], [10])

    yard.managers["mail"].said = Replicas(running=1, requested=6)  # there is no room for them
    yard.run(6)

    assert yard.managers["rich"].asked == [10, 9]
    assert yard.decisions("rich")[-1] == (-1, "making_room", True)
    assert yard.facts("scaling_trouble", "mail")[0]["code"] == "replicas_missing"


def test_a_worker_that_exits_after_all_had_appeared_takes_none_from_other_fleets(
    yard: Yard,
) -> None:
    yard.start(
        fleet("mail", patience_ms=5_000),
        fleet("rich", source="rich", min=2, cooldown_down_runs=1_000),
    )
    yard.managers["mail"].running, yard.managers["rich"].running = 1, 12
    yard.load(Sample(ready=10, consume_rate=12.0), "rich")  # ten would do
    yard.load(BUSY)
    yard.run(3)
    assert (yard.managers["mail"].running, yard.managers["rich"].running) == (6, 10)

    yard.load(Sample(ready=6, consume_rate=6.0))
    yard.managers["mail"].running = 5
    yard.run(10)

    assert yard.facts("scaling_trouble") == []
    assert yard.managers["rich"].asked == [10]


def test_nobody_makes_room_for_one_that_is_no_worse_off(yard: Yard) -> None:
    yard.start(fleet("mail", patience_ms=60_000), fleet("poor", source="poor", max=1))
    yard.managers["mail"].running = yard.managers["poor"].running = 1
    yard.load(BUSY)
    yard.load(BUSY, "poor")
    yard.run(2)
    yard.managers["mail"].said = Replicas(running=1, requested=6)

    yard.run(8)

    assert yard.managers["poor"].asked == []
