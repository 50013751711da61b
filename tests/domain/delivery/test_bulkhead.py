"""Routes share a pool of slots, and no route starves another."""

from __future__ import annotations

from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.delivery.bulkhead import PATIENCE_MS, Bulkhead
from penstock.domain.limits import MINUTE

PLACES = 200


class Pool:
    """A bulkhead, and all that is under way in it."""

    def __init__(self, places: int = PLACES, *, is_shared: bool = True) -> None:
        self.bulkhead = Bulkhead(places)
        self.is_shared = is_shared
        self.under_way: dict[str, list[int]] = {}
        self._numbers = count()
        self.at(0)

    def at(self, now: int) -> None:
        self.bulkhead.begin_step(now=now)

    def room(self, route: str, limit: int | None = None) -> int:
        return self.bulkhead.room(route, limit=limit, is_shared=self.is_shared)

    def fill(self, route: str, limit: int | None = None) -> int:
        """As much as it gets, one after the other; returns what it has then."""
        mine = self.under_way.setdefault(route, [])
        while self.room(route, limit):
            mine.append(next(self._numbers))
            self.bulkhead.enter(mine[-1], route, timeout_ms=2 * MINUTE)
        return len(mine)

    def end(self, route: str) -> None:
        for request in self.under_way.pop(route, []):
            self.bulkhead.leave(request, is_ended=True)


def test_the_only_route_has_all_places() -> None:
    assert Pool(is_shared=False).fill("only") == PLACES


def test_a_route_of_several_leaves_room_for_the_others() -> None:
    pool = Pool()

    assert pool.fill("hanging") == 144
    assert pool.fill("healthy") == 29


def test_room_for_several_requests_equals_that_of_single_ones() -> None:
    for places in (1, 2, 3, 7, 50, 199, 200):
        for others in range(0, places, 5):
            first, second = Pool(places), Pool(places)
            for pool in (first, second):
                pool.fill("other", limit=others)

            assert first.room("mine") == second.fill("mine")


def test_twenty_routes_that_hang_leave_a_place_for_one_more() -> None:
    pool = Pool()
    for number in range(20):
        assert pool.fill(f"hanging-{number}") >= 1

    assert pool.fill("healthy") >= 1


def test_the_limit_of_a_route_holds_as_well() -> None:
    pool = Pool()

    assert pool.fill("narrow", limit=3) == 3
    assert pool.room("narrow", limit=2) == 0


def test_a_route_that_hung_gets_less_at_its_next_try() -> None:
    pool = Pool()
    pool.fill("hanging")
    pool.at(PATIENCE_MS)
    assert pool.room("hanging") == 0
    pool.at(2 * MINUTE)
    pool.end("hanging")

    assert pool.fill("hanging") <= 40
    assert pool.fill("healthy") >= 100


def test_quick_answers_bring_the_share_back() -> None:
    pool = Pool()
    pool.fill("route")
    pool.at(2 * MINUTE)
    pool.end("route")
    for _ in range(5):
        pool.fill("route")
        pool.end("route")
        pool.at(2 * MINUTE)

    assert pool.fill("route") >= 140


def test_a_short_time_out_counts_as_slow_before_it_passes() -> None:
    pool = Pool()
    requests = range(50)
    for request in requests:
        pool.bulkhead.enter(request, "hanging", timeout_ms=1_000)
    pool.at(1_000)
    for request in requests:
        pool.bulkhead.leave(request, is_ended=True)

    assert pool.fill("hanging") < 50


def test_a_request_that_was_never_sent_does_not_count_against_its_route() -> None:
    pool = Pool()
    pool.fill("held")
    pool.at(PATIENCE_MS)
    for request in pool.under_way.pop("held"):
        pool.bulkhead.leave(request, is_ended=False)
    pool.at(PATIENCE_MS)

    assert pool.fill("held") == 144


@given(
    places=st.integers(1, 60),
    acts=st.lists(st.tuples(st.sampled_from("abcde"), st.booleans(), st.integers(0, 8_000))),
)
def test_no_more_places_are_given_than_there_are(
    places: int, acts: list[tuple[str, bool, int]]
) -> None:
    pool, now = Pool(places), 0
    for route, is_filling, passed_ms in acts:
        now += passed_ms
        pool.at(now)
        if is_filling:
            pool.fill(route)
        else:
            pool.end(route)
        under_way = sum(map(len, pool.under_way.values()))
        assert under_way <= places
        if under_way < places:
            assert pool.room("nothing under way yet") >= 1
