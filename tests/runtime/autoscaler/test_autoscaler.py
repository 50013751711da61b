"""The autoscaler from tick to tick: it reads, decides, acts, and remembers why."""

from __future__ import annotations

from penstock.domain.scaling.fleet_schedule import Period
from penstock.domain.scaling.recommendation import Replicas, Sample
from tests.runtime.autoscaler.yard import BUSY, QUIET, Yard, fleet

# ---- acting


def test_more_workers_are_started_when_more_are_needed(yard: Yard) -> None:
    yard.start()
    yard.managers["mail"].running = 1
    yard.load(BUSY)

    yard.run(2)

    assert yard.managers["mail"].asked == [6]
    assert yard.decisions() == [(5, "backlog", True)]


def test_fewer_workers_stay_when_fewer_are_needed(yard: Yard) -> None:
    yard.start()
    yard.managers["mail"].running = 4

    yard.run(2)

    assert yard.managers["mail"].asked == [0]
    assert yard.decisions() == [(-4, "idle", True)]


def test_limits_follow_the_schedule_of_the_fleet(yard: Yard) -> None:
    """It is noon."""
    lunch = Period(from_="11:30", to="12:01", min=4)
    evening = Period(from_="12:01", to="18:00", max=2)
    yard.start(fleet("mail", min=1, max=9, schedule=(lunch, evening), steady_ms=0))

    yard.tick()
    at_noon = yard.managers["mail"].running, yard.status().min, yard.status().max
    yard.desk.clock.advance(seconds=60)
    yard.load(Sample(ready=100, consume_rate=4.0))
    yard.run(2)
    then = yard.managers["mail"].running, yard.status().min, yard.status().max

    assert at_noon == (4, 4, 9)
    assert then == (2, 1, 2)
    assert [reason for _, reason, _ in yard.decisions()][:2] == ["below_minimum", "above_maximum"]


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
    assert yard.decisions() == []
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
    assert (0, "at_maximum", False) in yard.decisions()


def test_a_fleet_below_its_minimum_comes_first(yard: Yard) -> None:
    yard.start(fleet("mail", min=0), fleet("vital", min=2, queue="vital"))
    yard.managers["mail"].running = 10
    yard.managers["vital"].said = Replicas(running=1, requested=1)  # no room for a second one
    yard.load(BUSY)

    yard.run(2)

    assert yard.managers["mail"].running == 9
    assert (-1, "others_first", True) in yard.decisions()


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
