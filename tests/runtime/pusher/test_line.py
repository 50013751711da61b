"""Which queue is next."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.runtime.pusher.round_robin import Line


def a_line(*queue_nos: int, most: int = 10, **limits: int) -> Line:
    line = Line(most=most, limit_of=limits.get)
    for queue_no in queue_nos:
        line.hint(queue_no)
    return line


def test_whoever_was_served_goes_behind_those_who_were_not():
    line = a_line(1, 2, 3, most=1)

    turns = []
    for _ in range(6):
        [queue_no] = line.take()
        turns.append(queue_no)
        line.back(queue_no)

    assert turns == [1, 2, 3, 1, 2, 3]


def test_no_more_are_taken_than_there_is_room_for_and_none_twice():
    line = a_line(1, 2, 3, most=2)

    assert line.take() == [1, 2]
    line.hint(1)
    assert line.take() == []
    line.rest(2)
    assert line.take() == [3]


def test_whoever_has_nothing_is_forgotten_until_a_hint_comes():
    line = a_line(1)
    line.rest(*line.take())

    assert line.take() == []
    line.hint(1)
    assert line.take() == [1]


def test_a_hint_that_comes_while_a_queue_is_looked_at_is_not_lost():
    line = a_line(1, 2)
    line.take()
    line.hint(1)
    line.hint(2)

    line.rest(1)
    line.park(2, until=1_000)

    assert line.take() == [1, 2]


def test_a_parked_one_has_its_turn_at_its_instant():
    line = a_line(1, 2)
    line.take()
    line.park(1, until=500)
    line.park(2, until=300)

    assert line.next_instant() == 300
    line.wake_parked(now=299)
    assert line.take() == []
    line.wake_parked(now=300)
    assert line.take() == [2]
    assert line.next_instant() == 500


def test_a_hint_brings_a_parked_one_back_but_a_mere_suggestion_does_not():
    line = a_line(1, 2)
    line.take()
    line.park(1, until=500)
    line.park(2, until=500)

    line.suggest([1, 2, 3])
    assert line.take() == [3]
    line.hint(1)
    assert line.take() == [1]
    line.wake_parked(now=500)
    assert line.take() == [2]


def test_a_route_without_room_keeps_its_queues_waiting_and_nobody_elses():
    line = a_line(1, 2, 3, narrow=1)
    line.take()

    assert line.enter(1, "narrow")
    assert not line.enter(2, "narrow")
    assert line.enter(3, "wide")

    line.hint(2)
    assert line.take() == [], "it waits for its route, whatever comes"
    line.back(1)
    assert line.take() == [2], "it has waited its turn, so it goes before the one just served"


def test_a_queue_whose_route_is_known_to_be_full_is_not_even_looked_at():
    line = a_line(1, 2, narrow=1)
    line.take()
    line.enter(1, "narrow")
    line.rest(1)
    line.enter(2, "narrow")
    line.hint(1)

    assert line.take() == []
    line.rest(2)
    assert line.take() == [1]


def test_of_those_who_go_to_one_route_only_as_many_are_taken_as_it_has_room_for():
    line = a_line(1, 2, 3, narrow=2)
    for queue_no in line.take():
        line.enter(queue_no, "narrow")
        line.back(queue_no)

    assert line.take() == [1, 2]
    line.rest(1)
    assert line.take() == [3], "the first had nothing for the route after all"


def test_a_limit_that_falls_away_lets_all_in_that_waited():
    limits = {"narrow": 1}
    line = Line(most=10, limit_of=limits.get)
    for queue_no in (1, 2, 3):
        line.hint(queue_no)
    line.take()
    for queue_no in (1, 2, 3):
        line.enter(queue_no, "narrow")

    limits.clear()

    assert sorted(line.take()) == [2, 3]


ACTS = st.lists(
    st.tuples(st.sampled_from(["hint", "suggest", "serve", "empty", "fail"]), st.integers(0, 7)),
    max_size=80,
)


@given(ACTS, st.integers(1, 4), st.integers(1, 2))
def test_whatever_happens_limits_are_kept_and_nobody_is_left_behind(acts, most, limit):
    line = Line(most=most, limit_of={"even": limit}.get)
    under_way: dict[int, str] = {}
    hinted: set[int] = set()
    now = 0

    def go_on() -> None:
        for queue_no in line.take():
            assert queue_no not in under_way
            route = "even" if queue_no % 2 == 0 else "odd"
            if line.enter(queue_no, route):
                under_way[queue_no] = route
        assert len(under_way) <= most
        assert sum(route == "even" for route in under_way.values()) <= limit

    for what, number in acts:
        now += 1
        line.wake_parked(now=now)
        if what == "hint":
            line.hint(number)
            hinted.add(number)
        elif what == "suggest":
            line.suggest([number])
        elif under_way:
            queue_no = sorted(under_way)[number % len(under_way)]
            del under_way[queue_no]
            hinted.discard(queue_no)
            if what == "serve":
                line.back(queue_no)
            elif what == "empty":
                line.rest(queue_no)
            else:
                line.park(queue_no, now + 5)
        go_on()

    # From here on all are served: everybody who was hinted at must have had a turn by the end.
    for _ in range(100):
        now += 10
        line.wake_parked(now=now)
        go_on()
        for queue_no in list(under_way):
            hinted.discard(queue_no)
            del under_way[queue_no]
            line.rest(queue_no)
    assert hinted == set()
