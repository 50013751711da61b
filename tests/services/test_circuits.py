"""Circuits as whoever pushes requests or looks after them sees them; on both stores."""

from __future__ import annotations

import json

import pytest

from penstock.domain.errors import (
    RouteNotFound,
    StoreUnavailable,
)
from penstock.services.circuits.circuits import Circuits, Reported, Wanted
from tests.services.breaking import BreakingStore
from tests.services.floor import (
    CLOSED,
    FAILURE,
    GO,
    HALF,
    HASH,
    HOLD,
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
    assert not floor.is_held(queue), "nothing would ever unhold it"
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


# ---- looking


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
