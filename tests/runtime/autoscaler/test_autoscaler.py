"""The autoscaler from tick to tick: it reads, decides, acts, and remembers why."""

from __future__ import annotations

import pytest

from penstock.domain.errors import FleetsRefused
from penstock.domain.fleet_run import Way
from penstock.domain.fleets import AlertSpec, Processes
from penstock.domain.pressure import Pressure
from penstock.domain.scaling import Replicas, Sample
from tests.fakes import FakeReplicas
from tests.runtime.autoscaler.yard import BUSY, QUIET, Slow, Yard, fleet


def decisions(yard: Yard, name: str = "mail") -> list[tuple[int, str, bool]]:
    found = yard.facts("scaling_decision", name)
    return [(fact["change"], fact["reason"], fact["acted"]) for fact in found]


# ---- acting


def test_more_workers_are_started_when_more_are_needed(yard: Yard) -> None:
    yard.start()
    yard.managers["mail"].running = 1
    yard.load(BUSY)

    yard.run(2)

    assert yard.managers["mail"].asked == [6]
    assert decisions(yard) == [(5, "backlog", True)]


def test_fewer_workers_stay_when_fewer_are_needed(yard: Yard) -> None:
    yard.start()
    yard.managers["mail"].running = 4

    yard.run(2)

    assert yard.managers["mail"].asked == [0]
    assert decisions(yard) == [(-4, "idle", True)]


def test_the_first_message_starts_the_first_worker_at_once(yard: Yard) -> None:
    yard.start()
    yard.load(Sample(ready=1))

    yard.tick()

    assert yard.managers["mail"].running == 1


def test_nothing_is_done_while_nothing_is_to_be_done(yard: Yard) -> None:
    yard.start()
    yard.managers["mail"].running = 2
    yard.load(Sample(ready=2, consume_rate=2.0))

    yard.run(10)

    assert yard.managers["mail"].asked == []
    assert decisions(yard) == []
    assert yard.status().decision.reason in ("steady", "gathering")  # type: ignore[union-attr]


def test_a_fleet_is_looked_at_once_per_interval(yard: Yard) -> None:
    yard.start(fleet("mail", interval_ms=10_000))

    next_at = [yard.tick()]
    yard.desk.clock.advance(seconds=9)
    next_at.append(yard.tick())
    yard.desk.clock.advance(seconds=1)
    yard.tick()

    assert yard.loads["own"].reads == 2
    assert all(at > yard.desk.now - 10_000 for at in next_at)


def test_workers_are_tended_at_each_run(yard: Yard) -> None:
    yard.start()

    yard.run(3)

    assert yard.managers["mail"].tended == 3


def test_the_limits_of_a_fleet_are_kept(yard: Yard) -> None:
    yard.start(fleet("mail", min=2, max=3))
    yard.load(BUSY)

    yard.run(8)

    assert yard.managers["mail"].running == 3
    assert max(yard.managers["mail"].asked) == 3
    assert (0, "at_maximum", False) in decisions(yard)


def test_a_fleet_below_its_minimum_comes_first(yard: Yard) -> None:
    yard.start(fleet("mail", min=0), fleet("vital", min=2, queue="vital"))
    yard.managers["mail"].running = 10
    yard.managers["vital"].said = Replicas(running=1, requested=1)  # no room for a second one
    yard.load(BUSY)

    yard.run(2)

    assert yard.managers["mail"].running == 9
    assert (-1, "others_first", True) in decisions(yard)


def test_a_fleet_that_cannot_be_scaled_does_not_hold_up_the_others(yard: Yard) -> None:
    yard.start(fleet("broken", min=2), fleet("mail"))
    yard.managers["broken"].error = RuntimeError("no such machine")
    yard.managers["mail"].running = 1
    yard.load(BUSY)

    yard.run(2)

    assert yard.managers["mail"].running == 6


def test_after_scaling_a_fleet_cools_down(yard: Yard) -> None:
    yard.start(fleet("mail", cooldown_runs=3))
    yard.managers["mail"].running = 1
    yard.load(BUSY)

    yard.run(2)
    reads = []
    for _ in range(4):
        yard.run()
        reads.append(yard.status().decision.reason)  # type: ignore[union-attr]

    assert reads == ["cooling_down"] * 3 + ["gathering"]


# ---- dry runs


def test_a_dry_run_tells_what_it_would_do_once_and_does_nothing(yard: Yard) -> None:
    yard.start(is_dry=True)
    yard.managers["mail"].running = 1
    yard.load(BUSY)

    yard.run(8)

    assert yard.managers["mail"].asked == []
    assert yard.managers["mail"].tended == 0
    [fact] = yard.facts("scaling_decision", "mail")
    assert (fact["acted"], fact["dry_run"], fact["change"]) == (False, True, 5)
    assert yard.status().is_dry


def test_a_dry_run_does_not_take_the_place_of_the_real_one(yard: Yard) -> None:
    yard.start()
    yard.tick()
    dry = yard.another(holder="dry", is_dry=True)

    yard.tick(dry)

    assert yard.status().seen_by == "one"


# ---- pressure and alerts


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
    assert decisions(yard) == [(-7, "pressure", True)]
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


# ---- circuits


def test_nobody_is_started_into_an_open_circuit(yard: Yard) -> None:
    yard.start(fleet("mail", routes=("smtp",)))
    yard.managers["mail"].running = 1
    yard.load(BUSY)
    yard.way = Way.OPEN
    yard.run(6)
    assert yard.managers["mail"].asked == []
    assert decisions(yard) == [(0, "circuit_open", False)]

    yard.way = Way.FREE
    yard.run(2)

    assert yard.managers["mail"].asked == [6]


# ---- room for others


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
    assert decisions(yard, "rich")[-1] == (-1, "making_room", True)
    assert yard.facts("scaling_trouble", "mail")[0]["code"] == "replicas_missing"


def test_nobody_makes_room_for_one_that_is_no_worse_off(yard: Yard) -> None:
    yard.start(fleet("mail", patience_ms=60_000), fleet("poor", source="poor", max=1))
    yard.managers["mail"].running = yard.managers["poor"].running = 1
    yard.load(BUSY)
    yard.load(BUSY, "poor")
    yard.run(2)
    yard.managers["mail"].said = Replicas(running=1, requested=6)

    yard.run(8)

    assert yard.managers["poor"].asked == []


# ---- leading


def test_of_two_autoscalers_one_acts(yard: Yard) -> None:
    first = yard.start(fleet("mail", min=1))
    second = yard.another(holder="two")

    for _ in range(10):
        yard.tick(first)
        yard.tick(second)
        assert yard.status().seen_by == "one"
        yard.desk.clock.advance(seconds=5)

    assert yard.managers["mail"].asked == [1]


def test_when_the_one_that_acts_is_gone_the_other_goes_on_where_it_ended(yard: Yard) -> None:
    first = yard.start(fleet("mail", interval_ms=30_000))
    yard.managers["mail"].running = 1
    yard.load(BUSY)
    yard.tick(first)  # one sample of two
    second = yard.another(holder="two")
    yard.tick(second)

    yard.desk.clock.advance(seconds=30)  # nothing is heard of the first
    yard.tick(second)

    assert yard.managers["mail"].asked == [6]
    assert yard.status().seen_by == "two"
    yard.tick(first)
    yard.desk.clock.advance(seconds=30)
    yard.tick(first)
    assert yard.managers["mail"].asked == [6]


def test_one_that_ends_makes_way_at_once(yard: Yard) -> None:
    first = yard.start()
    yard.tick(first)
    first.close()
    second = yard.another(holder="two")

    yard.tick(second)

    assert yard.status().seen_by == "two"
    assert yard.loads["own"].is_closed
    assert yard.managers["mail"].is_closed


def test_one_that_slept_through_its_lease_does_not_act_on_what_it_knew(yard: Yard) -> None:
    aside = Slow("mail")
    first = yard.start(aside=aside)
    yard.load(Sample(ready=1))
    yard.tick(first)  # it asks
    yard.desk.clock.advance(seconds=31)
    yard.tick(yard.another(holder="two"))
    assert yard.managers["mail"].asked == [1]

    aside.answer()
    yard.tick(first)

    assert yard.managers["mail"].asked == [1]


def test_groups_do_not_know_of_each_other(yard: Yard) -> None:
    first = yard.start(fleet("mail", min=1), group="eu")
    yard.tick(first)
    second = yard.start(fleet("post", min=1), group="us", holder="two")
    yard.tick(second)

    assert yard.managers["mail"].asked == [1]
    assert yard.managers["post"].asked == [1]
    assert [status.name for status in yard.scaling.all().result()] == ["mail", "post"]


# ---- the file changes


def test_fleets_come_and_go_with_the_file(yard: Yard) -> None:
    yard.start(fleet("mail", min=1))
    yard.run()

    yard.text.fleets = yard.fleets(fleet("post", min=2))
    yard.run(2)

    assert yard.managers["post"].running == 2
    assert yard.managers["mail"].is_closed
    assert [status.name for status in yard.scaling.all().result()] == ["post"]


def test_a_fleet_that_changed_begins_anew_and_keeps_its_workers(yard: Yard) -> None:
    yard.start(fleet("mail", min=1))
    yard.load(Sample(ready=1, consume_rate=1.0))
    yard.run(2)

    yard.text.fleets = yard.fleets(fleet("mail", min=3))
    yard.run(2)

    assert yard.managers["mail"].running == 3
    assert yard.made == ["mail"]
    assert not yard.managers["mail"].is_closed


def test_a_fleet_that_did_not_change_does_not_begin_anew(yard: Yard) -> None:
    yard.start(fleet("mail"))
    yard.managers["mail"].running = 1
    yard.load(BUSY)
    yard.run(1)

    yard.text.fleets = yard.fleets(fleet("mail"), fleet("post"))
    yard.run(1)

    assert yard.managers["mail"].asked == [6]


def test_another_way_to_run_the_workers_makes_another_manager(yard: Yard) -> None:
    yard.start(fleet("mail"))
    yard.run()
    old = yard.managers.pop("mail")

    yard.text.fleets = yard.fleets(fleet("mail", replicas=Processes(app="shop:app")))
    yard.run()

    assert old.is_closed
    assert isinstance(yard.managers["mail"], FakeReplicas)
    assert yard.managers["mail"] is not old


def test_a_file_that_went_wrong_is_not_taken(yard: Yard, caplog: pytest.LogCaptureFixture) -> None:
    yard.start(fleet("mail", min=1))
    yard.run()

    yard.text.fleets = FleetsRefused("no TOML")
    yard.run(5)

    assert yard.status().min == 1
    assert caplog.text.count("the old one holds: no TOML") == 1


# ---- telling


def test_a_decision_is_a_fact_with_its_reason_and_all_its_inputs(yard: Yard) -> None:
    yard.start(fleet("mail", max=3))
    yard.managers["mail"].running = 1
    yard.load(BUSY)

    yard.run(2)

    [fact] = yard.facts("scaling_decision", "mail")
    assert (fact["change"], fact["wanted"], fact["reason"]) == (2, 3, "at_maximum")
    assert (fact["recommended"], fact["because"]) == (5, "backlog")
    assert (fact["acted"], fact["dry_run"], fact["by"]) == (True, False, "one")
    inputs = fact["inputs"]
    assert (inputs["backlog"], inputs["consume_rate"], inputs["needed"]) == (100, 1.0, 100)
    assert (inputs["running"], inputs["samples"], inputs["backlog_goal_s"]) == (1, 2, 1)


def test_what_is_known_of_a_fleet_can_be_asked_of_any_node(yard: Yard) -> None:
    yard.start(fleet("mail", max=3))
    yard.managers["mail"].running = 1
    yard.load(BUSY)
    yard.run(2)

    status = yard.status()

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
    assert yard.scaling.wanted("mail").result() == 3


def test_nothing_is_written_while_nothing_is_asked(yard: Yard) -> None:
    yard.start()
    yard.tick()
    before = yard.desk.read(lambda s: s.documents.find("scaling/mail"))

    yard.desk.clock.advance(seconds=1)
    yard.tick()

    assert yard.desk.read(lambda s: s.documents.find("scaling/mail")) == before


def test_quiet_runs_leave_no_facts(yard: Yard) -> None:
    yard.start()
    yard.load(QUIET)

    yard.run(30)

    assert yard.facts("scaling_decision") == []
