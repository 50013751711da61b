"""Circuits as whoever pushes requests or looks after them sees them; on both stores."""

from __future__ import annotations

import json

import pytest

from penstock.domain.breaker_settings import BreakerSettings
from penstock.domain.circuit import (
    PROBE_MS,
    circuit_hash,
)
from penstock.domain.errors import (
    CircuitNotFound,
    InvalidRequest,
    RouteNotFound,
    StoreUnavailable,
)
from penstock.services.circuits import Circuits, Reported, Wanted
from tests.services.breaking import BreakingStore
from tests.services.floor import (
    CLOSED,
    FAILURE,
    GO,
    HALF,
    HASH,
    HOLD,
    ON,
    OPEN,
    OTHER,
    OTHER_HASH,
    PATTERN,
    PROBE,
    SUCCESS,
    Floor,
)

# ---- opening


def test_a_circuit_opens_only_with_enough_samples_and_its_ratio_goes_on_changing(floor, queue):
    told = floor.ask(queue)
    ratios = []
    for name, outcome in [("a", FAILURE), ("b", FAILURE), ("c", SUCCESS), ("d", SUCCESS)]:
        floor.tell(told, outcome, name)
        view = floor.circuits.one(HASH).result()
        ratios.append((view.circuit.state, view.circuit.fail_ratio))

    assert ratios == [(CLOSED, 100), (OPEN, 100), (OPEN, 66), (OPEN, 50)]


def test_a_circuit_does_not_close_by_itself_however_good_its_ratio_gets(floor, queue):
    told = floor.ask(queue)
    floor.fail(queue)
    floor.circuits.report([Reported(told, f"s{i}", SUCCESS) for i in range(500)]).result()

    view = floor.circuits.one(HASH).result()
    assert (view.circuit.state, view.circuit.fail_ratio) == (OPEN, 0)


def test_a_queue_that_keeps_trying_one_request_counts_once(floor, queue):
    told = floor.ask(queue)
    for _ in range(5):
        floor.tell(told, FAILURE, "same")

    assert floor.state is CLOSED


def test_samples_outside_of_the_window_count_neither_for_the_ratio_nor_for_their_number(
    desk, queue
):
    floor = Floor(desk)
    floor.begin(entries_max_age_ms=1_000)
    told = floor.ask(queue)
    floor.tell(told, FAILURE, "a")
    desk.clock.advance(ms=1_001)

    floor.tell(told, FAILURE, "b")
    assert floor.state is CLOSED

    desk.clock.advance(ms=1_000)
    floor.tell(told, FAILURE, "c")
    assert floor.state is OPEN, "the older edge belongs to it"


def test_the_queue_that_makes_it_open_is_held_at_once_and_others_when_they_ask(floor, queue, other):
    was_told = floor.ask(other)
    floor.fail(queue)

    assert floor.is_held(queue)
    assert not floor.is_held(other)
    assert was_told.permit is GO, "and may finish"

    assert floor.ask(other).permit is HOLD
    assert floor.is_held(other)
    assert [held.queue for held in floor.desk.read(lambda s: s.circuits.held(HASH))] == ["q1", "q2"]


def test_of_a_batch_that_queue_is_held_whose_outcome_made_it_open(floor, queue, other, desk):
    third = desk.queue("q3")
    tellers = [floor.ask(one) for one in (queue, other, third)]

    reports = [Reported(told, f"r{told.queue_no}", FAILURE) for told in tellers]
    floor.circuits.report(reports).result()

    assert [floor.is_held(one) for one in (queue, other, third)] == [False, True, False]


def test_with_statistics_alone_circuits_open_and_nothing_is_stopped(desk, queue, other):
    floor = Floor(desk)
    floor.begin(circuit_check_enabled=False)
    assert not floor.circuits.is_checking
    told = floor.circuits.unchecked(PATTERN, queue.queue_no)
    floor.circuits.report([Reported(told, name, FAILURE) for name in "ab"]).result()

    assert floor.state is OPEN
    assert floor.is_held(queue), "the one that made it open, as in the seed"
    assert floor.ask(other).permit is GO
    floor.half_open()
    floor.tell(floor.ask(other), SUCCESS)
    assert floor.state is HALF, "nobody was let through as a probe"


def test_without_statistics_nothing_opens(desk, queue):
    floor = Floor(desk)
    floor.begin(statistics_update_enabled=False)

    floor.fail(queue, 50)

    assert floor.circuits.all().result() == {}


def test_what_counts_for_nothing_is_not_written(desk, queue):
    floor = Floor(desk, BreakingStore(desk.store, "circuits", "to_change"))
    floor.store.is_broken = False
    floor.begin(statistics_update_enabled=False)
    written = floor.store.writes

    floor.fail(queue, 50)
    floor.circuits.report([]).result()

    assert floor.store.writes == written


def test_who_was_not_let_through_has_nothing_to_tell(floor, queue, other):
    floor.fail(queue)
    before = floor.circuits.one(HASH).result()

    floor.tell(floor.ask(other), SUCCESS, "late")

    assert floor.circuits.one(HASH).result().circuit == before.circuit


# ---- asking


@pytest.mark.parametrize(("state", "permit"), [(CLOSED, GO), (OPEN, HOLD), (HALF, PROBE)])
def test_a_request_is_told_by_the_state_of_its_circuit(floor, queue, other, state, permit):
    if state is not CLOSED:
        floor.fail(queue)
    if state is HALF:
        floor.half_open()

    assert floor.circuits.state_of("/pay/1?x=2").result() is state
    assert floor.ask(other).permit is permit
    assert floor.ask(other).permit is permit
    assert floor.is_held(other) is (state is OPEN)


def test_a_request_that_no_route_matches_is_refused(floor):
    with pytest.raises(RouteNotFound):
        floor.circuits.state_of("/unknown")


def test_circuits_of_other_routes_are_not_touched(floor, queue, other):
    floor.fail(queue)

    assert floor.ask(other, OTHER).permit is GO
    assert floor.circuits.status(OTHER_HASH).result() is CLOSED


def test_many_are_asked_for_at_once(floor, queue, other):
    floor.fail(queue)
    wanted = [Wanted(OTHER, other.queue_no), Wanted(PATTERN, other.queue_no)]

    found = floor.circuits.permits(wanted).result()
    assert [one.permit for one in found] == [GO, HOLD]
    assert not floor.circuits.is_final(found)
    assert [one.permit for one in floor.circuits.secure(found).result()] == [GO, HOLD]
    assert floor.circuits.is_final(found[:1])


def test_a_circuit_that_closes_between_the_question_and_the_hold_holds_nothing(floor, queue, other):
    floor.fail(queue)
    found = floor.circuits.permits([Wanted(PATTERN, other.queue_no)]).result()
    floor.circuits.close(HASH).result()

    [told] = floor.circuits.secure(found).result()

    assert told.permit is GO
    assert not floor.is_held(other)


# ---- half-open


def test_a_probe_that_succeeds_closes_the_circuit_and_its_samples_are_forgotten(
    floor, queue, other
):
    floor.fail(queue)
    floor.half_open()
    floor.tell(floor.ask(other), SUCCESS)

    view = floor.circuits.one(HASH).result()
    assert (view.circuit.state, view.circuit.fail_ratio, view.held) == (CLOSED, 0, 0)
    assert floor.is_held(queue), "it is in the line"
    assert floor.desk.read(lambda s: s.circuits.line(9)) == [queue.queue_no]
    assert floor.desk.read(lambda s: s.circuits.samples(HASH, FAILURE)) == {}


def test_a_probe_that_fails_opens_it_again_and_nothing_else_changes(floor, queue, other):
    floor.fail(queue)
    floor.half_open()
    floor.tell(floor.ask(other), FAILURE)

    view = floor.circuits.one(HASH).result()
    assert (view.circuit.state, view.circuit.reopened, view.held) == (OPEN, 1, 1)
    assert set(floor.desk.read(lambda s: s.circuits.samples(HASH, FAILURE))) == {"f0", "f1", "r"}


def test_a_request_that_was_let_go_before_it_opened_decides_nothing(floor, queue, other):
    early = floor.ask(other)
    floor.fail(queue)
    floor.half_open()

    floor.tell(early, SUCCESS)

    assert floor.state is HALF


def test_the_first_answer_wins_and_late_ones_of_an_older_time_decide_nothing(floor, queue, other):
    floor.fail(queue)
    floor.half_open()
    first, second = floor.ask(other), floor.ask(other)
    floor.circuits.report([Reported(first, "a", FAILURE), Reported(second, "b", SUCCESS)]).result()
    assert floor.state is OPEN

    floor.half_open()
    floor.tell(second, SUCCESS)
    assert floor.state is HALF, "that was said of another time"

    floor.tell(floor.ask(other), SUCCESS)
    assert floor.state is CLOSED


def test_what_follows_in_a_batch_after_a_probe_has_closed_it_counts_anew(floor, queue, other):
    floor.fail(queue)
    floor.half_open()
    probe = floor.ask(other)
    reports = [Reported(probe, "a", SUCCESS), *(Reported(probe, x, FAILURE) for x in "bc")]

    floor.circuits.report(reports).result()

    assert floor.state is OPEN, "two of two failed since it was closed"
    assert set(floor.desk.read(lambda s: s.circuits.samples(HASH, FAILURE))) == {"b", "c"}
    assert floor.desk.read(lambda s: s.circuits.samples(HASH, SUCCESS)) == {}


def test_without_statistics_a_probe_still_decides(desk, queue, other):
    floor = Floor(desk)
    floor.begin()
    floor.fail(queue)
    floor.begin(statistics_update_enabled=False)
    floor.half_open()

    floor.tell(floor.ask(other), SUCCESS)

    assert floor.state is CLOSED


def test_all_that_are_not_held_may_try_unless_one_at_a_time_is_wanted(desk, queue, other):
    floor = Floor(desk)
    floor.begin()
    floor.fail(queue)
    floor.half_open()
    assert [floor.ask(other).permit for _ in range(3)] == [PROBE] * 3

    floor.begin(single_probe=True)
    probe = floor.ask(other)
    third = desk.queue("q3")
    assert (probe.permit, floor.ask(third).permit) == (PROBE, HOLD)
    assert floor.is_held(third)

    floor.tell(probe, None)
    assert floor.ask(other).permit is PROBE, "nothing came of the first"


def test_of_two_nodes_that_ask_at_once_one_gets_the_single_probe(desk, queue, other, open_store):
    here = Floor(desk)
    here.begin(single_probe=True)
    here.fail(queue)
    here.half_open()
    store = open_store() if desk.store.backend == "postgres" else desk.store
    there = Floor(desk, store)
    there.circuits.refresh()

    wanted = [Wanted(PATTERN, other.queue_no)]
    asked = [node.circuits.permits(wanted).result() for node in (here, there)]
    told = [
        node.circuits.secure(found).result()[0]
        for node, found in zip((here, there), asked, strict=True)
    ]

    assert [found[0].permit for found in asked] == [PROBE, PROBE]
    assert [one.permit for one in told] == [PROBE, HOLD]
    if store is not desk.store:
        store.close()


def test_a_probe_of_which_nothing_is_heard_does_not_keep_others_for_ever(desk, queue, other):
    floor = Floor(desk)
    floor.begin(single_probe=True)
    floor.fail(queue)
    floor.half_open()
    floor.ask(other)

    desk.clock.advance(ms=PROBE_MS - 1)
    assert floor.ask(other).permit is HOLD
    desk.clock.advance(ms=1)
    assert floor.ask(other).permit is PROBE


def test_when_a_probe_has_failed_the_next_half_open_time_has_one_of_its_own(desk, queue, other):
    floor = Floor(desk)
    floor.begin(single_probe=True)
    floor.fail(queue)
    floor.half_open()
    floor.tell(floor.ask(other), FAILURE)
    floor.half_open()

    assert floor.ask(other).permit is PROBE


# ---- by hand


def test_closing_one_that_is_closed_forgets_its_samples(floor, queue):
    floor.tell(floor.ask(queue), FAILURE)

    floor.circuits.close(HASH).result()

    assert floor.desk.read(lambda s: s.circuits.samples(HASH, FAILURE)) == {}
    assert floor.circuits.one(HASH).result().circuit.fail_ratio == 0


def test_closing_one_that_nobody_knows_changes_nothing(floor):
    floor.circuits.close("0" * 32).result()

    assert floor.circuits.all().result() == {}
    assert floor.circuits.status("0" * 32).result() is CLOSED
    assert floor.circuits.one("0" * 32).result() is None


def test_closing_all_closes_those_that_are_open_or_half_open(floor, queue, other):
    assert floor.circuits.close_all().result() == 0
    floor.fail(queue)
    floor.half_open()
    floor.fail(other, pattern=OTHER)

    assert floor.circuits.close_all().result() == 2

    views = floor.circuits.all().result()
    assert {view.circuit.state for view in views.values()} == {CLOSED}
    line = floor.desk.read(lambda s: s.circuits.line(9))
    assert line == [queue.queue_no, other.queue_no]


def test_one_that_a_person_opens_stays_open_until_a_person_closes_it(floor, queue):
    floor.circuits.force_open(HASH).result()
    assert floor.ask(queue).permit is HOLD

    floor.half_open()
    assert floor.state is OPEN
    assert floor.circuits.one(HASH).result().circuit.is_forced

    floor.circuits.close(HASH).result()
    assert floor.state is CLOSED
    assert floor.ask(queue).permit is GO


def test_a_circuit_that_nobody_knows_is_not_opened(floor):
    with pytest.raises(CircuitNotFound):
        floor.circuits.force_open("0" * 32).result()

    jobs = circuit_hash("stripe")
    assert floor.circuits.force_open(jobs, pattern="stripe").result().state is OPEN
    assert floor.ask_for_job().permit is HOLD


def test_circuits_are_listed_with_what_is_known_of_them(floor, queue, other):
    assert floor.circuits.all().result() == {}
    floor.fail(queue)
    floor.tell(floor.ask(other, OTHER), SUCCESS)

    views = floor.circuits.all().result()

    pay, mail = views[HASH], views[OTHER_HASH]
    assert (pay.circuit.pattern, pay.circuit.state, pay.circuit.fail_ratio) == (PATTERN, OPEN, 100)
    assert (pay.metric_name, pay.held) == ("pay", 1)
    assert (mail.circuit.state, mail.metric_name, mail.held) == (CLOSED, None, 0)
    assert floor.circuits.one(HASH).result() == pay


def test_facts_tell_what_happened_to_a_circuit(floor, queue, other):
    floor.fail(queue)
    floor.half_open()
    floor.tell(floor.ask(other), FAILURE)
    floor.half_open()
    floor.tell(floor.ask(other), SUCCESS)
    floor.circuits.close(HASH).result()
    floor.circuits.force_open(HASH).result()
    floor.circuits.close(HASH).result()

    told = [(fact.kind, json.loads(fact.data)["by"]) for fact in floor.facts()]
    assert told == [
        ("circuit_opened", "statistics"),
        ("circuit_half_opened", "tick"),
        ("circuit_reopened", "probe"),
        ("circuit_half_opened", "tick"),
        ("circuit_closed", "probe"),
        ("circuit_opened", "operator"),
        ("circuit_closed", "operator"),
    ]
    assert json.loads(floor.facts()[0].data) == {
        "pattern": PATTERN,
        "was": "closed",
        "fail_ratio": 100,
        "generation": 1,
        "by": "statistics",
    }


# ---- trouble


def test_an_outcome_of_a_route_that_is_gone_counts_for_nothing(floor, queue):
    told = floor.ask(queue)
    floor.routes.remove().result()

    floor.circuits.report([Reported(told, name, FAILURE) for name in "ab"]).result()

    assert floor.circuits.all().result() == {}


BROKEN = {
    "hold": ("queues", "hold"),
    "unhold": ("queues", "unhold"),
    "line": ("circuits", "take_from_line"),
    "samples": ("circuits", "rotate"),
    "close": ("circuits", "let_go"),
    "save": ("circuits", "save"),
    "facts": ("facts", "add"),
}


@pytest.mark.parametrize(
    ("where", "act"),
    [
        ("hold", "open"),
        ("save", "open"),
        ("facts", "open"),
        ("save", "half_open"),
        ("unhold", "probes"),
        ("samples", "probes"),
        ("close", "close"),
        ("close", "close_all"),
        ("save", "close"),
        ("save", "reopen"),
        ("line", "next"),
        ("unhold", "next"),
    ],
)
def test_when_the_store_fails_nothing_is_changed_and_the_next_try_does_it(
    desk, queue, other, where, act
):
    floor = Floor(desk)
    floor.begin()
    if act != "open":
        floor.fail(queue)
    if act in ("probes", "reopen", "close"):
        floor.half_open()
    probe = floor.ask(other)
    if act == "next":
        floor.circuits.close(HASH).result()
    store = BreakingStore(desk.store, *BROKEN[where])
    broken = Circuits(store, desk.clock, floor.routes)
    broken.refresh()
    now = desk.clock.advance(seconds=5)

    def do() -> None:
        match act:
            case "open":
                broken.report([Reported(probe, name, FAILURE) for name in "ab"]).result()
            case "half_open":
                assert broken.half_open_all(now=now).result().done == 1
            case "probes":
                assert broken.let_probes_go(now=now).result().done == 1
            case "close":
                broken.close(HASH).result()
            case "close_all":
                assert broken.close_all().result() == 1
            case "reopen":
                broken.report([Reported(probe, "a", FAILURE)]).result()
            case _:
                assert broken.let_next_go(now=now).result().done == 1

    def everything() -> object:
        return desk.read(
            lambda s: (
                s.circuits.all(),
                s.circuits.held(HASH),
                s.circuits.line(9),
                s.circuits.samples(HASH, FAILURE),
                [s.queues.get(one.queue_no).held_by for one in (queue, other)],
            )
        )

    before = everything()
    with pytest.raises(StoreUnavailable):
        do()
    assert everything() == before

    store.is_broken = False
    do()
    assert everything() != before


# ---- settings


def test_settings_are_the_seeds_until_somebody_sets_them(desk):
    floor = Floor(desk)

    assert floor.circuits.breaker.get().result() == floor.circuits.settings == BreakerSettings()


def test_settings_are_taken_by_all_nodes_and_reset_for_all(desk):
    here, there = Floor(desk), Floor(desk)
    wanted = BreakerSettings(**ON)

    assert here.circuits.breaker.put(wanted).result() == wanted
    assert here.circuits.settings == wanted, "at once where they were put"
    assert there.circuits.breaker.get().result() == wanted
    there.circuits.refresh()
    assert there.circuits.settings == wanted

    there.circuits.breaker.reset().result()
    here.circuits.refresh()
    assert here.circuits.settings == BreakerSettings()
    assert here.circuits.breaker.get().result() == BreakerSettings()


def test_settings_out_of_range_are_refused_and_not_kept(floor):
    before = floor.circuits.settings

    with pytest.raises(InvalidRequest, match="error_threshold_percentage"):
        floor.circuits.breaker.put(BreakerSettings(error_threshold_percentage=101))

    assert floor.circuits.settings == floor.circuits.breaker.get().result() == before


def test_settings_that_this_version_cannot_read_leave_the_present_ones(floor, desk, caplog):
    before = floor.circuits.settings
    desk.write(lambda s: s.documents.put("circuit_breaker", '{"of_the_future": 1}', now=desk.now))

    floor.circuits.refresh()

    assert floor.circuits.settings == before
    assert "not taken" in caplog.text
