"""What every store promises about circuits: states, samples, held queues, and the line to go."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.domain import circuit as circuits
from penstock.domain.breaker_settings import BreakerSettings
from penstock.domain.circuit import Circuit, CircuitState, Held, Outcome, circuit_hash
from penstock.domain.queue import Queue
from penstock.domain.sampling import note_all
from penstock.ports.store import Claimed, Session
from tests.store.desk import Desk

OPEN, HALF, CLOSED = CircuitState.OPEN, CircuitState.HALF_OPEN, CircuitState.CLOSED
FAILURE, SUCCESS = Outcome.FAILURE, Outcome.SUCCESS
PATTERN = "/playground/(.*)"
HASH = circuit_hash(PATTERN)
OTHER = "/other/(.*)"
OTHER_HASH = circuit_hash(OTHER)
SETTINGS = BreakerSettings(max_queue_sample_count=5, entries_max_age_ms=1_000)


def add(desk: Desk, pattern: str = PATTERN, **changes: Any) -> Circuit:
    """A circuit as it stands in the store."""
    wanted = Circuit(pattern=pattern, **changes)

    def do(session: Session) -> Circuit:
        session.circuits.to_note({circuit_hash(pattern): pattern})
        session.circuits.save({circuit_hash(pattern): wanted})
        return wanted

    return desk.write(do)


def get(desk: Desk, one: str = HASH) -> Circuit | None:
    return desk.read(lambda s: s.circuits.find([one])).get(one)


def note(desk: Desk, *batch: tuple[str, Outcome], pattern: str = PATTERN) -> Circuit:
    """As one report; the ratio and all else as the domain says."""
    one = circuit_hash(pattern)
    since = desk.now - SETTINGS.entries_max_age_ms

    def do(session: Session) -> Circuit:
        found = session.circuits.to_note({one: pattern})[one]
        most = SETTINGS.max_queue_sample_count
        lines = session.circuits.lines({one: batch}, since=since, most=most)
        after, _ = note_all(found, lines[one], batch, SETTINGS, now=desk.now)
        session.circuits.keep_lines(lines)
        session.circuits.save({one: after})
        return after

    return desk.write(do)


def samples(desk: Desk, outcome: Outcome, one: str = HASH) -> dict[str, int]:
    return desk.read(lambda s: s.circuits.samples(one, outcome))


def hold(desk: Desk, *queues: Queue, pattern: str = PATTERN) -> None:
    """At one instant."""
    one = circuit_hash(pattern)
    nos = [queue.queue_no for queue in queues]

    def do(session: Session) -> None:
        session.circuits.to_note({one: pattern})
        session.circuits.hold(one, nos, now=desk.now)
        session.queues.hold(nos, by=one)

    desk.write(do)
    desk.clock.advance(ms=1)


def held(desk: Desk, one: str = HASH) -> list[Held]:
    return desk.read(lambda s: s.circuits.held(one))


def let_go(desk: Desk, *hashes: str) -> None:
    def do(session: Session) -> None:
        found = session.circuits.to_change(hashes)
        session.circuits.let_go(hashes)
        session.circuits.save({one: circuits.close(it) for one, it in found.items()})

    desk.write(do)


def line(desk: Desk) -> list[int]:
    return desk.read(lambda s: s.circuits.line(100))


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


# ---- queues


@pytest.fixture
def queues(desk: Desk) -> list[Queue]:
    return [desk.queue(f"q{i}") for i in range(3)]


def test_a_held_queue_gives_nothing_keeps_taking_and_spends_no_attempt(desk):
    mail = desk.queue()
    before = desk.send(mail)
    desk.write(lambda s: s.queues.hold([mail.queue_no], by=HASH))
    during = desk.send(mail)

    assert desk.submit_claim(mail).result() == Claimed([])
    assert desk.get(before).attempts == 0
    assert desk.read(lambda s: s.queues.get(mail.queue_no)).held_by == HASH

    assert desk.write(lambda s: s.queues.unhold([mail.queue_no])) == [mail.queue_no]
    assert desk.claim_ids(mail) == [before, during]


def test_to_hold_and_to_pause_are_two_things(desk):
    mail = desk.queue()
    desk.send(mail)
    desk.pause(mail)
    desk.write(lambda s: s.queues.hold([mail.queue_no], by=HASH))

    desk.pause(mail, is_paused=False)
    assert desk.claim(mail) == [], "still held"

    desk.pause(mail)
    desk.write(lambda s: s.queues.unhold([mail.queue_no]))
    assert desk.claim(mail) == [], "still paused"

    desk.pause(mail, is_paused=False)
    assert len(desk.claim(mail)) == 1


def test_whoever_holds_a_message_of_a_held_queue_may_finish_it(desk):
    mail = desk.queue()
    desk.send(mail)
    [message] = desk.claim(mail)
    desk.write(lambda s: s.queues.hold([mail.queue_no], by=HASH))

    desk.complete(message)

    assert desk.counts(mail).done_total == 1


def test_a_queue_that_is_let_go_is_told_to_those_who_wait_there(desk):
    mail, other = desk.queue(), desk.queue("other")
    desk.write(lambda s: s.queues.hold([mail.queue_no], by=HASH))
    woken: dict[int, int] = {}
    desk.store.listen(woken.update)

    let_go = desk.write(lambda s: s.queues.unhold([mail.queue_no, other.queue_no]))

    assert let_go == [mail.queue_no], "the other one was not held"
    assert woken.keys() == {mail.queue_no}


def test_holding_changes_nothing_else_about_a_queue(desk):
    mail = desk.queue()
    desk.clock.advance(minutes=1)
    desk.write(lambda s: s.queues.hold([mail.queue_no], by=HASH))

    found = desk.read(lambda s: s.queues.find("mail"))

    assert (found.settings, found.changed_at, found.is_paused) == (
        mail.settings,
        mail.changed_at,
        False,
    )
    assert found.version == mail.version + 1, "caches must see it"
    assert desk.pause(mail).held_by == HASH


def test_a_removed_queue_is_not_held(desk):
    mail = desk.queue()
    desk.write(lambda s: s.queues.remove(mail.queue_no, now=desk.now))

    desk.write(lambda s: s.queues.hold([mail.queue_no], by=HASH))

    assert desk.write(lambda s: s.queues.unhold([mail.queue_no])) == []
    assert desk.write(lambda s: (s.queues.hold([], by=HASH), s.queues.unhold([]))) == (None, [])


def test_a_circuit_knows_its_queues_by_how_long_it_holds_them(desk, queues):
    first, second, third = queues
    at = desk.now
    hold(desk, second)
    hold(desk, third, first)
    hold(desk, second)

    assert held(desk) == [Held("q0", at + 1), Held("q2", at + 1), Held("q1", at + 2)]
    assert desk.read(lambda s: s.circuits.held_counts()) == {HASH: 3}


def test_the_queue_that_waited_longest_goes_first_and_then_to_the_back(desk, queues):
    hold(desk, queues[1])
    hold(desk, queues[0])
    hold(desk, queues[2], pattern=OTHER)
    order = []
    for _ in range(3):

        def rotate(session: Session) -> list[int]:
            found = session.circuits.to_change([HASH, OTHER_HASH])
            return session.circuits.rotate(list(found), now=desk.now)

        expected, line_up = circuits.next_sample(held(desk), now=desk.now)
        order.append(sorted(desk.write(rotate)))
        assert held(desk) == sorted(line_up, key=lambda one: (one.at, one.queue))
        assert expected is not None
        desk.clock.advance(ms=1)

    q0, q1, q2 = (queue.queue_no for queue in queues)
    assert order == [[q1, q2], [q0, q2], [q1, q2]], "one per circuit"


def test_a_circuit_without_queues_lets_none_go(desk):
    add(desk)

    def rotate(session: Session) -> list[int]:
        return session.circuits.rotate(list(session.circuits.to_change([HASH])), now=desk.now)

    assert desk.write(rotate) == []
    assert desk.write(lambda s: s.circuits.rotate([], now=desk.now)) == []


def test_closing_puts_queues_into_the_line_and_forgets_the_samples(desk, queues):
    add(desk, state=OPEN, fail_ratio=90)
    note(desk, ("a", FAILURE), ("b", SUCCESS))
    hold(desk, queues[2])
    hold(desk, queues[0], queues[1])
    expected = circuits.in_order(held(desk))

    let_go(desk, HASH)

    by_no = {queue.queue_no: queue.name for queue in queues}
    assert [by_no[no] for no in line(desk)] == expected == ["q2", "q0", "q1"]
    assert held(desk) == []
    assert samples(desk, FAILURE) == samples(desk, SUCCESS) == {}
    after = get(desk)
    assert after is not None
    assert (after.state, after.fail_ratio) == (CLOSED, 0)
    assert desk.read(lambda s: s.queues.get(queues[0].queue_no)).held_by == HASH, "not let go yet"
    assert note(desk, ("c", FAILURE)).fail_ratio == 100, "counted from the beginning"


def test_other_circuits_keep_what_is_theirs(desk, queues):
    note(desk, ("a", FAILURE), pattern=OTHER)
    hold(desk, queues[0], pattern=OTHER)
    hold(desk, queues[1])

    let_go(desk, HASH)

    assert [one.queue for one in held(desk, OTHER_HASH)] == ["q0"]
    assert list(samples(desk, FAILURE, OTHER_HASH)) == ["a"]


def test_a_circuit_may_be_removed(desk, queues):
    note(desk, ("a", FAILURE))
    hold(desk, queues[0])
    add(desk, OTHER)

    def remove(session: Session) -> None:
        session.circuits.to_change([HASH])
        session.circuits.let_go([HASH])
        session.circuits.remove([HASH])

    desk.write(remove)

    assert list(desk.read(lambda s: s.circuits.all())) == [OTHER_HASH]
    assert line(desk) == [queues[0].queue_no]
    assert samples(desk, FAILURE) == {}


def test_the_line_is_first_in_first_out_and_may_be_empty(desk, queues):
    def take(count: int) -> list[int]:
        return desk.write(lambda s: s.circuits.take_from_line(count))

    assert take(1) == []
    hold(desk, queues[1], queues[2])
    let_go(desk, HASH)
    hold(desk, queues[0], queues[1])
    let_go(desk, HASH)
    q0, q1, q2 = (queue.queue_no for queue in queues)

    assert take(1) == [q1]
    assert take(2) == [q2, q0]
    assert take(9) == [q1], "as often as it was put there"
    assert take(1) == []


def test_a_removed_queue_neither_tries_nor_comes_into_the_line(desk, queues):
    hold(desk, queues[0])
    hold(desk, queues[1])
    desk.write(lambda s: s.queues.remove(queues[0].queue_no, now=desk.now))

    def rotate(session: Session) -> list[int]:
        return session.circuits.rotate(list(session.circuits.to_change([HASH])), now=desk.now)

    assert desk.write(rotate) == [queues[1].queue_no]
    assert [one.queue for one in held(desk)] == ["q1"]
    let_go(desk, HASH)
    assert line(desk) == [queues[1].queue_no]
