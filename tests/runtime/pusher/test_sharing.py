"""Many queues, few requests at a time: fair, within limits, and without excess queries."""

from __future__ import annotations

from collections import Counter

import pytest

from penstock.domain.errors import StoreUnavailable
from penstock.domain.message.lifecycle import State
from penstock.ports.store import Store
from penstock.runtime.pusher.finder import QueueFinder
from tests.fakes import FakeSender
from tests.runtime.pusher.driver import LEASE_MS, RETRY_MS, PusherDriver, paths
from tests.store.counter_checks import check_counters
from tests.store.driver import StoreDriver


def test_a_queue_with_many_deliveries_does_not_delay_the_others(store_driver: StoreDriver):
    driver = PusherDriver(store_driver, concurrency=1)
    much, little, least = (driver.queue(name) for name in ("much", "little", "least"))
    for number in range(4):
        driver.deliver(much, f"/much/{number}")
    driver.deliver(little, "/little/0")
    driver.deliver(little, "/little/1")
    driver.deliver(least, "/least/0")

    driver.step()
    for _ in range(9):  # some steps only find that a queue is empty by now
        driver.answer(200)

    assert driver.sent() == [
        *("/much/0", "/little/0", "/least/0"),
        *("/much/1", "/little/1", "/much/2", "/much/3"),
    ]


def test_no_more_requests_are_in_flight_than_configured(store_driver: StoreDriver):
    driver = PusherDriver(store_driver, concurrency=3)
    for number in range(8):
        driver.deliver(driver.queue(f"q{number}"), f"/{number}")

    seen = []
    driver.step()
    while driver.sender.open:
        seen.append(len(driver.sender.open))
        driver.answer(200)

    assert seen == [3, 3, 2]
    assert len(store_driver.endings()) == 8


def test_a_route_has_no_more_requests_in_flight_than_it_allows_and_delays_no_other(
    driver: PusherDriver,
):
    driver.rules(
        {
            "/narrow/(.*)": {"url": "http://narrow/$1", "concurrency": 2},
            "/(.*)": {"url": "http://wide/$1"},
        }
    )
    ids = [driver.deliver(driver.queue(f"n{number}"), f"/narrow/{number}") for number in range(5)]
    for number in range(5):
        driver.deliver(driver.queue(f"w{number}"), f"/{number}")

    driver.step()
    driver.step()

    hosts = Counter(request.url.split("/")[2] for request, _ in driver.sender.open)
    assert hosts == {"narrow": 2, "wide": 5}
    assert [driver.message(one).attempts for one in ids] == [1, 1, 0, 0, 0]
    for _ in range(3):
        driver.answer(200)
        assert Counter(r.url.split("/")[2] for r, _ in driver.sender.open)["narrow"] <= 2
    assert len(driver.store_driver.endings()) == 10
    check_counters(driver.store_driver)


def test_an_endpoint_that_hangs_does_not_keep_other_routes_waiting(store_driver: StoreDriver):
    driver = PusherDriver(store_driver, concurrency=200)
    driver.rules(
        {"/slow/(.*)": {"url": "http://slow/$1"}, "/well/(.*)": {"url": "http://well/$1"}},
    )
    hanging = [driver.queue(f"slow-{number}") for number in range(230)]
    for queue in hanging:
        driver.deliver(queue, f"/slow/{queue.name}")
    driver.step()
    driver.step()
    assert 100 < len(driver.open()) < 200
    well = driver.queue("well")
    for number in range(3):
        driver.deliver(well, f"/well/{number}")

    for number in range(3):
        driver.step()
        assert driver.open()[-1] == f"/{number}"
        driver.sender.answer_one(200, host="well")
    driver.step()

    assert [ending.outcome for ending in store_driver.endings()] == [State.DONE] * 3
    driver.clock.advance(seconds=40)
    driver.answer(None, error="no answer")
    driver.clock.advance(ms=RETRY_MS)
    for _ in range(3):
        driver.step()
    assert 0 < len(driver.open()) < 50, "it has less than before, because it hung"
    check_counters(store_driver)


def test_queues_that_wait_for_their_route_are_not_claimed_from_repeatedly(driver: PusherDriver):
    driver.rule("/(.*)", url="http://narrow/$1", concurrency=1)
    ids = [driver.deliver(driver.queue(f"q{number}"), f"/{number}") for number in range(4)]
    for _ in range(10):
        driver.step()

    assert [len(driver.store_driver.attempts(one)) for one in ids] == [0, 1, 1, 1], (
        "released once each"
    )


def test_two_nodes_share_the_work_and_nothing_is_sent_twice(driver: PusherDriver):
    other = FakeSender()
    another = driver.another(other, "node-2", concurrency=3)
    for number in range(6):
        queue = driver.queue(f"q{number}")
        for part in "ab":
            driver.deliver(queue, f"/{number}{part}")

    another.tick(driver.store_driver.now)
    driver.step()
    for _ in range(6):
        other.answer(200)
        another.tick(driver.store_driver.now)
        driver.answer(200)

    sent = driver.sent() + paths(other.sent)
    assert Counter(sent) == {f"/{number}{part}": 1 for number in range(6) for part in "ab"}
    assert len(other.sent) >= 3


def test_many_queues_take_few_transactions(driver: PusherDriver):
    for number in range(60):
        driver.deliver(driver.queue(f"q{number}"), f"/{number}")
    counted = Counted(driver.store_driver.store)
    sender = FakeSender()
    driver.store_driver.store = counted
    pusher = driver.another(sender, concurrency=60)

    pusher.tick(driver.store_driver.now)
    sender.answer(200)
    pusher.tick(driver.store_driver.now)

    assert len(sender.sent) == 60
    assert counted.calls["act"] == 1
    assert counted.calls["claim_all"] == 2
    assert counted.calls["read"] <= 4
    assert counted.calls["claim"] == 0


def test_a_wake_up_wakes_the_pusher_for_deliveries_and_soon_not_for_other_queues(
    driver: PusherDriver,
):
    woken: list[int] = []
    finder = QueueFinder(driver.store_driver.store, scan_ms=1_000_000, wake=lambda: woken.append(1))
    ours, others = driver.queue(), driver.store_driver.queue("mail")
    finder.find(now=driver.store_driver.now)

    finder.on_wakeup({ours.queue_no: 1, others.queue_no: 1})
    found = finder.find(now=driver.store_driver.now)
    finder.on_wakeup({others.queue_no: 5})
    finder.on_wakeup({ours.queue_no: 0})

    assert (found.woken, len(woken)) == ([ours.queue_no], 1)
    assert finder.find(now=driver.store_driver.now).woken == []


def test_without_a_scan_a_wake_up_is_enough(store_driver: StoreDriver):
    driver = PusherDriver(store_driver, scan_ms=1_000_000)
    queue = driver.queue()
    driver.step()
    driver.deliver(queue, "/a")
    driver.step()
    assert driver.sent() == []

    driver.pusher.on_wakeup({queue.queue_no: 1})
    driver.step()

    assert driver.sent() == ["/a"]


def test_the_next_step_is_due_when_something_is_and_not_before(store_driver: StoreDriver):
    driver = PusherDriver(store_driver, scan_ms=100_000)
    driver.deliver(driver.queue(), "/a")
    now = store_driver.now

    assert driver.step() == now + LEASE_MS // 3, "a lease to be extended"
    driver.sender.answer(500)
    assert driver.step() == now + RETRY_MS, "a failure to be tried again"
    driver.clock.advance(ms=RETRY_MS)
    driver.step()
    driver.sender.answer(200)
    driver.step()
    assert driver.step() == now + 100_000, "to look for more"


def test_a_store_that_fails_loses_no_answer(driver: PusherDriver):
    queue = driver.queue()
    driver.deliver(queue, "/a")
    driver.deliver(queue, "/b")
    troubled = Counted(driver.store_driver.store)
    driver.store_driver.store = troubled
    sender = FakeSender()
    pusher = driver.another(sender)
    pusher.tick(driver.store_driver.now)

    sender.answer(200)
    troubled.is_down = True
    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            pusher.tick(driver.store_driver.now)
    troubled.is_down = False
    pusher.tick(driver.store_driver.now)

    assert [ending.outcome for ending in driver.store_driver.endings()] == [State.DONE]
    assert paths(sender.sent) == ["/a", "/b"]


def test_a_store_that_fails_between_claim_and_permit_costs_a_lease_and_no_message(
    driver: PusherDriver,
):
    driver.deliver(driver.queue(), "/a")
    driver.breaker()
    troubled = Counted(driver.store_driver.store)
    troubled.fails_after_claims = True
    driver.circuits._store = troubled
    with pytest.raises(StoreUnavailable):
        driver.step()
    troubled.fails_after_claims = False
    driver.step()
    assert driver.sent() == []

    driver.clock.advance(ms=LEASE_MS)
    driver.reap()
    driver.step()

    assert driver.sent() == ["/a"]


class Counted:
    """A store that counts what is asked of it, and can be out of reach."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.calls: Counter[str] = Counter()
        self.is_down = False
        self.fails_after_claims = False

    def __getattr__(self, name: str):
        self.calls[name] += 1
        if self.is_down and name == "act":
            raise StoreUnavailable("the disk is full")
        if self.fails_after_claims and name == "read":
            raise StoreUnavailable("the disk is full")
        return getattr(self._store, name)
