"""Circuits as pushers and operators see them, on both stores."""

from __future__ import annotations

import json

import pytest

from penstock.domain.circuit.circuit import OutcomeReport
from penstock.domain.errors import (
    RouteNotFound,
    StoreUnavailable,
)
from penstock.services.circuits.circuits import CircuitService
from penstock.services.circuits.permits import PermitRequest
from tests.services.driver import (
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
    CircuitDriver,
)
from tests.services.failing_store import FailingStore

# ---- opening


def test_a_circuit_opens_only_with_enough_outcomes_and_its_ratio_keeps_changing(driver, queue):
    permitted = driver.ask(queue)
    ratios = []
    for name, outcome in [("a", FAILURE), ("b", FAILURE), ("c", SUCCESS), ("d", SUCCESS)]:
        driver.report(permitted, outcome, name)
        view = driver.circuits.find(HASH).result()
        ratios.append((view.circuit.state, view.circuit.fail_ratio))

    assert ratios == [(CLOSED, 100), (OPEN, 100), (OPEN, 66), (OPEN, 50)]


def test_a_circuit_does_not_close_by_itself_however_good_its_ratio_gets(driver, queue):
    permitted = driver.ask(queue)
    driver.fail(queue)
    driver.circuits.report(
        [OutcomeReport(permitted, f"s{i}", SUCCESS) for i in range(500)]
    ).result()

    view = driver.circuits.find(HASH).result()
    assert (view.circuit.state, view.circuit.fail_ratio) == (OPEN, 0)


def test_a_request_that_is_retried_counts_once(driver, queue):
    permitted = driver.ask(queue)
    for _ in range(5):
        driver.report(permitted, FAILURE, "same")

    assert driver.state is CLOSED


def test_outcomes_outside_of_the_window_count_neither_for_the_ratio_nor_for_their_number(
    store_driver, queue
):
    driver = CircuitDriver(store_driver)
    driver.begin(entries_max_age_ms=1_000)
    permitted = driver.ask(queue)
    driver.report(permitted, FAILURE, "a")
    store_driver.clock.advance(ms=1_001)

    driver.report(permitted, FAILURE, "b")
    assert driver.state is CLOSED

    store_driver.clock.advance(ms=1_000)
    driver.report(permitted, FAILURE, "c")
    assert driver.state is OPEN, "the older edge belongs to it"


def test_the_queue_that_makes_it_open_is_held_at_once_and_others_when_they_ask(
    driver, queue, other
):
    before = driver.ask(other)
    driver.fail(queue)

    assert driver.is_held(queue)
    assert not driver.is_held(other)
    assert before.permit is GO, "and may finish"

    assert driver.ask(other).permit is HOLD
    assert driver.is_held(other)
    assert [held.queue for held in driver.store_driver.read(lambda s: s.circuits.held(HASH))] == [
        "q1",
        "q2",
    ]


def test_a_batch_holds_only_the_queue_whose_outcome_opened_the_circuit(
    driver, queue, other, store_driver
):
    third = store_driver.queue("q3")
    tellers = [driver.ask(one) for one in (queue, other, third)]

    reports = [OutcomeReport(permitted, f"r{permitted.queue_no}", FAILURE) for permitted in tellers]
    driver.circuits.report(reports).result()

    assert [driver.is_held(one) for one in (queue, other, third)] == [False, True, False]


def test_with_statistics_alone_circuits_open_and_nothing_is_stopped(store_driver, queue, other):
    driver = CircuitDriver(store_driver)
    driver.begin(circuit_check_enabled=False)
    assert not driver.circuits.is_checking
    permitted = driver.circuits.unchecked(PATTERN, queue.queue_no)
    driver.circuits.report([OutcomeReport(permitted, name, FAILURE) for name in "ab"]).result()

    assert driver.state is OPEN
    assert not driver.is_held(queue), "nothing would ever unhold it"
    assert driver.ask(other).permit is GO
    driver.half_open()
    driver.report(driver.ask(other), SUCCESS)
    assert driver.state is HALF, "no request was permitted as a probe"


def test_without_statistics_nothing_opens(store_driver, queue):
    driver = CircuitDriver(store_driver)
    driver.begin(statistics_update_enabled=False)

    driver.fail(queue, 50)

    assert driver.circuits.all().result() == {}


def test_outcomes_that_do_not_count_are_not_written(store_driver, queue):
    driver = CircuitDriver(store_driver, FailingStore(store_driver.store, "circuits", "lock"))
    driver.store.is_broken = False
    driver.begin(statistics_update_enabled=False)
    written = driver.store.writes

    driver.fail(queue, 50)
    driver.circuits.report([]).result()

    assert driver.store.writes == written


def test_an_outcome_without_a_permit_changes_nothing(driver, queue, other):
    driver.fail(queue)
    before = driver.circuits.find(HASH).result()

    driver.report(driver.ask(other), SUCCESS, "late")

    assert driver.circuits.find(HASH).result().circuit == before.circuit


# ---- asking


@pytest.mark.parametrize(("state", "permit"), [(CLOSED, GO), (OPEN, HOLD), (HALF, PROBE)])
def test_the_permit_of_a_request_follows_from_the_state_of_its_circuit(
    driver, queue, other, state, permit
):
    if state is not CLOSED:
        driver.fail(queue)
    if state is HALF:
        driver.half_open()

    assert driver.circuits.status(driver.routes.match("/pay/1?x=2").hash).result() is state
    assert driver.ask(other).permit is permit
    assert driver.ask(other).permit is permit
    assert driver.is_held(other) is (state is OPEN)


def test_a_request_that_no_route_matches_is_refused(driver):
    with pytest.raises(RouteNotFound):
        driver.routes.match("/unknown")


def test_circuits_of_other_routes_are_not_touched(driver, queue, other):
    driver.fail(queue)

    assert driver.ask(other, OTHER).permit is GO
    assert driver.circuits.status(OTHER_HASH).result() is CLOSED


def test_many_are_asked_for_at_once(driver, queue, other):
    driver.fail(queue)
    wanted = [PermitRequest(OTHER, other.queue_no), PermitRequest(PATTERN, other.queue_no)]

    found = driver.circuits.permits(wanted).result()
    assert [one.permit for one in found] == [GO, HOLD]
    assert not driver.circuits.is_final(found)
    assert [one.permit for one in driver.circuits.secure(found).result()] == [GO, HOLD]
    assert driver.circuits.is_final(found[:1])


def test_a_circuit_that_closes_between_the_question_and_the_hold_holds_nothing(
    driver, queue, other
):
    driver.fail(queue)
    found = driver.circuits.permits([PermitRequest(PATTERN, other.queue_no)]).result()
    driver.circuits.close(HASH).result()

    [permitted] = driver.circuits.secure(found).result()

    assert permitted.permit is GO
    assert not driver.is_held(other)


# ---- looking


def test_circuits_are_listed_with_what_is_known_of_them(driver, queue, other):
    assert driver.circuits.all().result() == {}
    driver.fail(queue)
    driver.report(driver.ask(other, OTHER), SUCCESS)

    views = driver.circuits.all().result()

    pay, mail = views[HASH], views[OTHER_HASH]
    assert (pay.circuit.pattern, pay.circuit.state, pay.circuit.fail_ratio) == (PATTERN, OPEN, 100)
    assert (pay.metric_name, pay.held) == ("pay", 1)
    assert (mail.circuit.state, mail.metric_name, mail.held) == (CLOSED, None, 0)
    assert driver.circuits.find(HASH).result() == pay


def test_facts_record_what_happened_to_a_circuit(driver, queue, other):
    driver.fail(queue)
    driver.half_open()
    driver.report(driver.ask(other), FAILURE)
    driver.half_open()
    driver.report(driver.ask(other), SUCCESS)
    driver.circuits.close(HASH).result()
    driver.circuits.force_open(HASH).result()
    driver.circuits.close(HASH).result()

    changes = [(fact.kind, json.loads(fact.data)["by"]) for fact in driver.facts()]
    assert changes == [
        ("circuit_opened", "statistics"),
        ("circuit_half_opened", "tick"),
        ("circuit_reopened", "probe"),
        ("circuit_half_opened", "tick"),
        ("circuit_closed", "probe"),
        ("circuit_opened", "operator"),
        ("circuit_closed", "operator"),
    ]
    assert json.loads(driver.facts()[0].data) == {
        "pattern": PATTERN,
        "was": "closed",
        "fail_ratio": 100,
        "generation": 1,
        "by": "statistics",
    }


# ---- trouble


def test_an_outcome_of_a_route_that_is_gone_counts_for_nothing(driver, queue):
    permitted = driver.ask(queue)
    driver.routes.remove().result()

    driver.circuits.report([OutcomeReport(permitted, name, FAILURE) for name in "ab"]).result()

    assert driver.circuits.all().result() == {}


BROKEN = {
    "hold": ("queues", "hold"),
    "unhold": ("queues", "unhold"),
    "line": ("circuits", "take_for_release"),
    "samples": ("circuits", "rotate"),
    "close": ("circuits", "queue_for_release_and_forget"),
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
    store_driver, queue, other, where, act
):
    driver = CircuitDriver(store_driver)
    driver.begin()
    if act != "open":
        driver.fail(queue)
    if act in ("probes", "reopen", "close"):
        driver.half_open()
    probe = driver.ask(other)
    if act == "next":
        driver.circuits.close(HASH).result()
    store = FailingStore(store_driver.store, *BROKEN[where])
    broken = CircuitService(store, store_driver.clock, driver.routes)
    broken.refresh()
    now = store_driver.clock.advance(seconds=5)

    def do() -> None:
        match act:
            case "open":
                broken.report([OutcomeReport(probe, name, FAILURE) for name in "ab"]).result()
            case "half_open":
                assert broken.half_open_all(now=now).result().done == 1
            case "probes":
                assert broken.release_probes(now=now).result().done == 1
            case "close":
                broken.close(HASH).result()
            case "close_all":
                assert broken.close_all().result() == 1
            case "reopen":
                broken.report([OutcomeReport(probe, "a", FAILURE)]).result()
            case _:
                assert broken.release_next(now=now).result().done == 1

    def everything() -> object:
        return store_driver.read(
            lambda s: (
                s.circuits.all(),
                s.circuits.held(HASH),
                s.circuits.next_for_release(9),
                s.circuits.outcomes(HASH, FAILURE),
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
