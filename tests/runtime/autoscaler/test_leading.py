"""Of several autoscalers one acts; and fleets come, change and go with their file."""

from __future__ import annotations

import pytest

from penstock.domain.errors import FleetsRefused
from penstock.domain.scaling.fleet import Processes
from penstock.domain.scaling.recommendation import Sample
from tests.fakes import FakeReplicas
from tests.runtime.autoscaler.yard import BUSY, Slow, Yard, fleet


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


def test_after_an_orderly_restart_workers_are_back_within_two_intervals(yard: Yard) -> None:
    first = yard.start(fleet("mail", min=1))
    yard.run(3)  # the worker was asked for, and was seen
    first.close()
    yard.managers["mail"].running = 0  # as processes are drained with their autoscaler

    yard.autoscaler = yard.another(holder="two")
    yard.run(2)

    assert yard.managers["mail"].running == 1
    assert yard.facts("scaling_trouble") == []


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
