"""Circuits in a store: their states and their outcomes."""

from __future__ import annotations

from penstock.domain.circuit.circuit import Circuit, CircuitState
from tests.store.circuit_helpers import (
    FAILURE,
    HALF,
    HASH,
    OPEN,
    OTHER,
    OTHER_HASH,
    PATTERN,
    SETTINGS,
    SUCCESS,
    add,
    get,
    note,
    outcomes,
)

# ---- states


def test_a_circuit_is_found_as_it_was_saved(driver):
    wanted = add(
        driver,
        state=OPEN,
        fail_ratio=93,
        opened_at=driver.now,
        reopened=3,
        is_forced=True,
        generation=7,
        probe_until=driver.now + 5,
    )

    assert get(driver) == wanted
    assert driver.read(lambda s: s.circuits.find([HASH, "0" * 32])) == {HASH: wanted}
    assert driver.read(lambda s: s.circuits.find([])) == {}


def test_an_unknown_circuit_is_not_found(driver):
    assert get(driver) is None
    assert driver.read(lambda s: s.circuits.all()) == {}
    assert driver.write(lambda s: s.circuits.lock([HASH])) == {}


def test_a_new_one_is_closed_and_one_that_is_there_stays_as_it_is(driver):
    opened = add(driver, state=OPEN)
    new = driver.write(lambda s: s.circuits.lock_or_add({HASH: PATTERN, OTHER_HASH: OTHER}))

    assert new == {HASH: opened, OTHER_HASH: Circuit(pattern=OTHER)}
    assert driver.read(lambda s: s.circuits.all()) == new


def test_circuits_are_found_by_their_states(driver):
    opened, half, closed = (
        add(driver, "/o", state=OPEN),
        add(driver, "/h", state=HALF),
        add(driver, "/c"),
    )

    def found(*states: CircuitState) -> list[Circuit]:
        return list(driver.write(lambda s: s.circuits.lock_in(states)).values())

    assert found(OPEN) == [opened]
    assert found(HALF) == [half]
    assert {one.pattern for one in found(OPEN, HALF)} == {"/o", "/h"}
    assert closed not in found(OPEN, HALF)


# ---- samples


def test_a_new_attempt_takes_the_place_of_an_older_one_with_the_same_outcome(driver):
    note(driver, ("a", FAILURE), ("b", SUCCESS))
    first = driver.now
    driver.clock.advance(ms=10)

    after = note(driver, ("a", FAILURE), ("a", SUCCESS))

    assert outcomes(driver, FAILURE) == {"a": driver.now}
    assert outcomes(driver, SUCCESS) == {"a": driver.now, "b": first}
    assert after.fail_ratio == 33, "an id that failed and succeeded counts in both"


def test_no_more_than_the_limit_of_each_outcome_is_kept_and_the_oldest_are_dropped(driver):
    for i in range(7):
        note(driver, (f"s{i}", SUCCESS), (f"f{i}", FAILURE))
        driver.clock.advance(ms=1)

    assert sorted(outcomes(driver, SUCCESS)) == ["s2", "s3", "s4", "s5", "s6"]
    assert sorted(outcomes(driver, FAILURE)) == ["f2", "f3", "f4", "f5", "f6"]


def test_outcomes_of_the_same_age_are_dropped_by_name(driver):
    note(driver, *((name, FAILURE) for name in "gfaebdc"))

    assert sorted(outcomes(driver, FAILURE)) == list("cdefg")


def test_an_outcome_is_kept_if_its_request_is_tried_again(driver):
    for name in "abcde":
        note(driver, (name, FAILURE))
        driver.clock.advance(ms=1)

    note(driver, ("a", FAILURE), ("f", FAILURE), ("g", FAILURE))

    assert sorted(outcomes(driver, FAILURE)) == list("adefg")


def test_an_outcome_that_is_too_old_does_not_count_but_is_kept(driver):
    note(driver, ("a", FAILURE), ("b", FAILURE))
    driver.clock.advance(ms=SETTINGS.entries_max_age_ms)
    at_the_edge = note(driver, ("c", SUCCESS))
    driver.clock.advance(ms=1)
    after = note(driver, ("d", SUCCESS))

    assert at_the_edge.fail_ratio == 66
    assert after.fail_ratio == 0
    assert sorted(outcomes(driver, FAILURE)) == ["a", "b"]


def test_circuits_have_samples_of_their_own(driver):
    note(driver, ("a", FAILURE))
    note(driver, ("a", SUCCESS), pattern=OTHER)

    assert outcomes(driver, SUCCESS) == {}
    assert list(outcomes(driver, SUCCESS, OTHER_HASH)) == ["a"]
