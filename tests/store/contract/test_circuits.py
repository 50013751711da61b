"""What every store promises about circuits: their states, and their samples."""

from __future__ import annotations

from penstock.domain.circuit.circuit import Circuit, CircuitState
from tests.store.circuits_desk import (
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
    samples,
)

# ---- states


def test_a_circuit_is_found_as_it_was_saved(desk):
    wanted = add(
        desk,
        state=OPEN,
        fail_ratio=93,
        opened_at=desk.now,
        reopened=3,
        is_forced=True,
        generation=7,
        probe_until=desk.now + 5,
    )

    assert get(desk) == wanted
    assert desk.read(lambda s: s.circuits.find([HASH, "0" * 32])) == {HASH: wanted}
    assert desk.read(lambda s: s.circuits.find([])) == {}


def test_of_one_that_was_never_noted_nothing_is_known(desk):
    assert get(desk) is None
    assert desk.read(lambda s: s.circuits.all()) == {}
    assert desk.write(lambda s: s.circuits.to_change([HASH])) == {}


def test_a_new_one_is_closed_and_one_that_is_there_stays_as_it_is(desk):
    opened = add(desk, state=OPEN)
    new = desk.write(lambda s: s.circuits.to_note({HASH: PATTERN, OTHER_HASH: OTHER}))

    assert new == {HASH: opened, OTHER_HASH: Circuit(pattern=OTHER)}
    assert desk.read(lambda s: s.circuits.all()) == new


def test_circuits_are_found_by_their_states(desk):
    opened, half, closed = add(desk, "/o", state=OPEN), add(desk, "/h", state=HALF), add(desk, "/c")

    def found(*states: CircuitState) -> list[Circuit]:
        return list(desk.write(lambda s: s.circuits.to_change_in(states)).values())

    assert found(OPEN) == [opened]
    assert found(HALF) == [half]
    assert {one.pattern for one in found(OPEN, HALF)} == {"/o", "/h"}
    assert closed not in found(OPEN, HALF)


# ---- samples


def test_a_new_attempt_takes_the_place_of_an_older_one_with_the_same_outcome(desk):
    note(desk, ("a", FAILURE), ("b", SUCCESS))
    first = desk.now
    desk.clock.advance(ms=10)

    after = note(desk, ("a", FAILURE), ("a", SUCCESS))

    assert samples(desk, FAILURE) == {"a": desk.now}
    assert samples(desk, SUCCESS) == {"a": desk.now, "b": first}
    assert after.fail_ratio == 33, "an id that failed and succeeded counts in both"


def test_no_more_than_the_limit_are_kept_of_each_outcome_and_the_oldest_go(desk):
    for i in range(7):
        note(desk, (f"s{i}", SUCCESS), (f"f{i}", FAILURE))
        desk.clock.advance(ms=1)

    assert sorted(samples(desk, SUCCESS)) == ["s2", "s3", "s4", "s5", "s6"]
    assert sorted(samples(desk, FAILURE)) == ["f2", "f3", "f4", "f5", "f6"]


def test_of_the_same_age_those_go_first_that_come_first_by_name(desk):
    note(desk, *((name, FAILURE) for name in "gfaebdc"))

    assert sorted(samples(desk, FAILURE)) == list("cdefg")


def test_one_that_would_have_gone_stays_if_it_is_tried_again(desk):
    for name in "abcde":
        note(desk, (name, FAILURE))
        desk.clock.advance(ms=1)

    note(desk, ("a", FAILURE), ("f", FAILURE), ("g", FAILURE))

    assert sorted(samples(desk, FAILURE)) == list("adefg")


def test_what_is_too_old_does_not_count_but_is_kept(desk):
    note(desk, ("a", FAILURE), ("b", FAILURE))
    desk.clock.advance(ms=SETTINGS.entries_max_age_ms)
    at_the_edge = note(desk, ("c", SUCCESS))
    desk.clock.advance(ms=1)
    after = note(desk, ("d", SUCCESS))

    assert at_the_edge.fail_ratio == 66
    assert after.fail_ratio == 0
    assert sorted(samples(desk, FAILURE)) == ["a", "b"]


def test_circuits_have_samples_of_their_own(desk):
    note(desk, ("a", FAILURE))
    note(desk, ("a", SUCCESS), pattern=OTHER)

    assert samples(desk, SUCCESS) == {}
    assert list(samples(desk, SUCCESS, OTHER_HASH)) == ["a"]
