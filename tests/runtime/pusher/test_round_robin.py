"""Which queue is next."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.runtime.pusher.round_robin import RoundRobin


def a_round_robin(*queue_nos: int, most: int = 10, **limits: int) -> RoundRobin:
    round_robin = RoundRobin(most=most, limit_of=limits.get)
    for queue_no in queue_nos:
        round_robin.wake(queue_no)
    return round_robin


def test_a_queue_that_was_served_goes_behind_the_others():
    round_robin = a_round_robin(1, 2, 3, most=1)

    turns = []
    for _ in range(6):
        [queue_no] = round_robin.take()
        turns.append(queue_no)
        round_robin.put_behind(queue_no)

    assert turns == [1, 2, 3, 1, 2, 3]


def test_no_more_are_taken_than_there_is_room_for_and_none_twice():
    round_robin = a_round_robin(1, 2, 3, most=2)

    assert round_robin.take() == [1, 2]
    round_robin.wake(1)
    assert round_robin.take() == []
    round_robin.drop_idle(2)
    assert round_robin.take() == [3]


def test_an_empty_queue_is_forgotten_until_a_wakeup_comes():
    round_robin = a_round_robin(1)
    round_robin.drop_idle(*round_robin.take())

    assert round_robin.take() == []
    round_robin.wake(1)
    assert round_robin.take() == [1]


def test_a_wakeup_that_comes_while_a_queue_is_taken_is_not_lost():
    round_robin = a_round_robin(1, 2)
    round_robin.take()
    round_robin.wake(1)
    round_robin.wake(2)

    round_robin.drop_idle(1)
    round_robin.park(2, until=1_000)

    assert round_robin.take() == [1, 2]


def test_a_parked_queue_is_due_at_its_instant():
    round_robin = a_round_robin(1, 2)
    round_robin.take()
    round_robin.park(1, until=500)
    round_robin.park(2, until=300)

    assert round_robin.next_instant() == 300
    round_robin.wake_parked(now=299)
    assert round_robin.take() == []
    round_robin.wake_parked(now=300)
    assert round_robin.take() == [2]
    assert round_robin.next_instant() == 500


def test_a_wakeup_brings_a_parked_queue_back_but_a_scan_does_not():
    round_robin = a_round_robin(1, 2)
    round_robin.take()
    round_robin.park(1, until=500)
    round_robin.park(2, until=500)

    round_robin.add_scanned([1, 2, 3])
    assert round_robin.take() == [3]
    round_robin.wake(1)
    assert round_robin.take() == [1]
    round_robin.wake_parked(now=500)
    assert round_robin.take() == [2]


def test_a_full_route_keeps_only_its_own_queues_waiting():
    round_robin = a_round_robin(1, 2, 3, narrow=1)
    round_robin.take()

    assert round_robin.enter(1, "narrow")
    assert not round_robin.enter(2, "narrow")
    assert round_robin.enter(3, "wide")

    round_robin.wake(2)
    assert round_robin.take() == [], "it waits for its route, whatever comes"
    round_robin.put_behind(1)
    assert round_robin.take() == [2], (
        "it has waited its turn, so it goes before the one just served"
    )


def test_a_queue_whose_route_is_known_to_be_full_is_not_taken():
    round_robin = a_round_robin(1, 2, narrow=1)
    round_robin.take()
    round_robin.enter(1, "narrow")
    round_robin.drop_idle(1)
    round_robin.enter(2, "narrow")
    round_robin.wake(1)

    assert round_robin.take() == []
    round_robin.drop_idle(2)
    assert round_robin.take() == [1]


def test_only_as_many_queues_of_a_route_are_taken_as_it_has_room_for():
    round_robin = a_round_robin(1, 2, 3, narrow=2)
    for queue_no in round_robin.take():
        round_robin.enter(queue_no, "narrow")
        round_robin.put_behind(queue_no)

    assert round_robin.take() == [1, 2]
    round_robin.drop_idle(1)
    assert round_robin.take() == [3], "the first had nothing for the route after all"


def test_removing_a_limit_admits_all_waiting_queues():
    limits = {"narrow": 1}
    round_robin = RoundRobin(most=10, limit_of=limits.get)
    for queue_no in (1, 2, 3):
        round_robin.wake(queue_no)
    round_robin.take()
    for queue_no in (1, 2, 3):
        round_robin.enter(queue_no, "narrow")

    limits.clear()

    assert sorted(round_robin.take()) == [2, 3]


ACTS = st.lists(
    st.tuples(st.sampled_from(["wake", "scan", "serve", "empty", "fail"]), st.integers(0, 7)),
    max_size=80,
)


@given(ACTS, st.integers(1, 4), st.integers(1, 2))
def test_limits_are_kept_and_every_queue_is_served(acts, most, limit):
    round_robin = RoundRobin(most=most, limit_of={"even": limit}.get)
    in_flight: dict[int, str] = {}
    woken: set[int] = set()
    now = 0

    def proceed() -> None:
        for queue_no in round_robin.take():
            assert queue_no not in in_flight
            route = "even" if queue_no % 2 == 0 else "odd"
            if round_robin.enter(queue_no, route):
                in_flight[queue_no] = route
        assert len(in_flight) <= most
        assert sum(route == "even" for route in in_flight.values()) <= limit

    for what, number in acts:
        now += 1
        round_robin.wake_parked(now=now)
        if what == "wake":
            round_robin.wake(number)
            woken.add(number)
        elif what == "scan":
            round_robin.add_scanned([number])
        elif in_flight:
            queue_no = sorted(in_flight)[number % len(in_flight)]
            del in_flight[queue_no]
            woken.discard(queue_no)
            if what == "serve":
                round_robin.put_behind(queue_no)
            elif what == "empty":
                round_robin.drop_idle(queue_no)
            else:
                round_robin.park(queue_no, now + 5)
        proceed()

    # From here on all are served: every woken queue must have been taken by the end.
    for _ in range(100):
        now += 10
        round_robin.wake_parked(now=now)
        proceed()
        for queue_no in list(in_flight):
            woken.discard(queue_no)
            del in_flight[queue_no]
            round_robin.drop_idle(queue_no)
    assert woken == set()
