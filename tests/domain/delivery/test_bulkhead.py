"""Routes share a pool of slots, and no route starves another."""

from __future__ import annotations

from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.delivery.bulkhead import SLOW_AFTER_MS, Bulkhead
from penstock.domain.limits import MINUTE

SLOTS = 200


class BulkheadDriver:
    """A bulkhead, and all that is under way in it."""

    def __init__(self, slots: int = SLOTS, *, is_shared: bool = True) -> None:
        self.bulkhead = Bulkhead(slots)
        self.is_shared = is_shared
        self.under_way: dict[str, list[int]] = {}
        self._numbers = count()
        self.at(0)

    def at(self, now: int) -> None:
        self.bulkhead.begin_step(now=now)

    def free_slots(self, route: str, limit: int | None = None) -> int:
        return self.bulkhead.free_slots(route, limit=limit, is_shared=self.is_shared)

    def fill(self, route: str, limit: int | None = None) -> int:
        """As much as it gets, one after the other; returns what it has then."""
        mine = self.under_way.setdefault(route, [])
        while self.free_slots(route, limit):
            mine.append(next(self._numbers))
            self.bulkhead.enter(mine[-1], route, timeout_ms=2 * MINUTE)
        return len(mine)

    def end(self, route: str) -> None:
        for request in self.under_way.pop(route, []):
            self.bulkhead.leave(request, is_ended=True)


def test_the_only_route_has_all_places() -> None:
    assert BulkheadDriver(is_shared=False).fill("only") == SLOTS


def test_a_route_of_several_leaves_room_for_the_others() -> None:
    driver = BulkheadDriver()

    assert driver.fill("hanging") == 144
    assert driver.fill("healthy") == 29


def test_room_for_several_requests_equals_that_of_single_ones() -> None:
    for slots in (1, 2, 3, 7, 50, 199, 200):
        for others in range(0, slots, 5):
            first, second = BulkheadDriver(slots), BulkheadDriver(slots)
            for driver in (first, second):
                driver.fill("other", limit=others)

            assert first.free_slots("mine") == second.fill("mine")


def test_twenty_routes_that_hang_leave_a_place_for_one_more() -> None:
    driver = BulkheadDriver()
    for number in range(20):
        assert driver.fill(f"hanging-{number}") >= 1

    assert driver.fill("healthy") >= 1


def test_the_limit_of_a_route_holds_as_well() -> None:
    driver = BulkheadDriver()

    assert driver.fill("narrow", limit=3) == 3
    assert driver.free_slots("narrow", limit=2) == 0


def test_a_route_that_hung_gets_less_at_its_next_try() -> None:
    driver = BulkheadDriver()
    driver.fill("hanging")
    driver.at(SLOW_AFTER_MS)
    assert driver.free_slots("hanging") == 0
    driver.at(2 * MINUTE)
    driver.end("hanging")

    assert driver.fill("hanging") <= 40
    assert driver.fill("healthy") >= 100


def test_quick_answers_bring_the_share_back() -> None:
    driver = BulkheadDriver()
    driver.fill("route")
    driver.at(2 * MINUTE)
    driver.end("route")
    for _ in range(5):
        driver.fill("route")
        driver.end("route")
        driver.at(2 * MINUTE)

    assert driver.fill("route") >= 140


def test_a_short_timeout_counts_as_slow_before_it_passes() -> None:
    driver = BulkheadDriver()
    requests = range(50)
    for request in requests:
        driver.bulkhead.enter(request, "hanging", timeout_ms=1_000)
    driver.at(1_000)
    for request in requests:
        driver.bulkhead.leave(request, is_ended=True)

    assert driver.fill("hanging") < 50


def test_a_request_that_was_never_sent_does_not_count_against_its_route() -> None:
    driver = BulkheadDriver()
    driver.fill("held")
    driver.at(SLOW_AFTER_MS)
    for request in driver.under_way.pop("held"):
        driver.bulkhead.leave(request, is_ended=False)
    driver.at(SLOW_AFTER_MS)

    assert driver.fill("held") == 144


@given(
    slots=st.integers(1, 60),
    acts=st.lists(st.tuples(st.sampled_from("abcde"), st.booleans(), st.integers(0, 8_000))),
)
def test_no_more_places_are_given_than_there_are(
    slots: int, acts: list[tuple[str, bool, int]]
) -> None:
    driver, now = BulkheadDriver(slots), 0
    for route, is_filling, passed_ms in acts:
        now += passed_ms
        driver.at(now)
        if is_filling:
            driver.fill(route)
        else:
            driver.end(route)
        under_way = sum(map(len, driver.under_way.values()))
        assert under_way <= slots
        if under_way < slots:
            assert driver.free_slots("nothing under way yet") >= 1
