"""Many queues, few requests at a time: fair, within limits, and without asking too often."""

from __future__ import annotations

from collections import Counter

import pytest

from penstock.domain.errors import StoreUnavailable
from penstock.domain.message.lifecycle import State
from penstock.ports.store import Store
from penstock.runtime.pusher.finder import Finder
from tests.fakes import FakeSender
from tests.runtime.pusher.rig import LEASE_MS, RETRY_MS, Rig, paths
from tests.store.desk import Desk
from tests.store.recount import check_books


def test_no_queue_waits_longer_than_the_others_because_one_has_much(desk: Desk):
    rig = Rig(desk, concurrency=1)
    much, little, least = (rig.queue(name) for name in ("much", "little", "least"))
    for number in range(4):
        rig.deliver(much, f"/much/{number}")
    rig.deliver(little, "/little/0")
    rig.deliver(little, "/little/1")
    rig.deliver(least, "/least/0")

    rig.step()
    for _ in range(9):  # some steps only find that a queue is empty by now
        rig.answer(200)

    assert rig.sent() == [
        *("/much/0", "/little/0", "/least/0"),
        *("/much/1", "/little/1", "/much/2", "/much/3"),
    ]


def test_no_more_is_under_way_than_set(desk: Desk):
    rig = Rig(desk, concurrency=3)
    for number in range(8):
        rig.deliver(rig.queue(f"q{number}"), f"/{number}")

    seen = []
    rig.step()
    while rig.sender.open:
        seen.append(len(rig.sender.open))
        rig.answer(200)

    assert seen == [3, 3, 2]
    assert len(desk.endings()) == 8


def test_of_a_route_no_more_is_under_way_than_it_allows_and_others_are_not_kept_back(rig: Rig):
    rig.rules(
        {
            "/narrow/(.*)": {"url": "http://narrow/$1", "concurrency": 2},
            "/(.*)": {"url": "http://wide/$1"},
        }
    )
    ids = [rig.deliver(rig.queue(f"n{number}"), f"/narrow/{number}") for number in range(5)]
    for number in range(5):
        rig.deliver(rig.queue(f"w{number}"), f"/{number}")

    rig.step()
    rig.step()

    hosts = Counter(request.url.split("/")[2] for request, _ in rig.sender.open)
    assert hosts == {"narrow": 2, "wide": 5}
    assert [rig.message(one).attempts for one in ids] == [1, 1, 0, 0, 0]
    for _ in range(3):
        rig.answer(200)
        assert Counter(r.url.split("/")[2] for r, _ in rig.sender.open)["narrow"] <= 2
    assert len(rig.desk.endings()) == 10
    check_books(rig.desk)


def test_an_endpoint_that_hangs_does_not_keep_other_routes_waiting(desk: Desk):
    rig = Rig(desk, concurrency=200)
    rig.rules(
        {"/slow/(.*)": {"url": "http://slow/$1"}, "/well/(.*)": {"url": "http://well/$1"}},
    )
    hanging = [rig.queue(f"slow-{number}") for number in range(230)]
    for queue in hanging:
        rig.deliver(queue, f"/slow/{queue.name}")
    rig.step()
    rig.step()
    assert 100 < len(rig.open()) < 200
    well = rig.queue("well")
    for number in range(3):
        rig.deliver(well, f"/well/{number}")

    for number in range(3):
        rig.step()
        assert rig.open()[-1] == f"/{number}"
        rig.sender.answer_one(200, host="well")
    rig.step()

    assert [ending.outcome for ending in desk.endings()] == [State.DONE] * 3
    rig.clock.advance(seconds=40)
    rig.answer(None, error="no answer")
    rig.clock.advance(ms=RETRY_MS)
    for _ in range(3):
        rig.step()
    assert 0 < len(rig.open()) < 50, "it has less than before, because it hung"
    check_books(desk)


def test_those_who_wait_for_their_route_are_not_claimed_again_and_again(rig: Rig):
    rig.rule("/(.*)", url="http://narrow/$1", concurrency=1)
    ids = [rig.deliver(rig.queue(f"q{number}"), f"/{number}") for number in range(4)]
    for _ in range(10):
        rig.step()

    assert [len(rig.desk.attempts(one)) for one in ids] == [0, 1, 1, 1], "released once each"


def test_two_nodes_share_the_work_and_nothing_is_sent_twice(rig: Rig):
    other = FakeSender()
    another = rig.another(other, "node-2", concurrency=3)
    for number in range(6):
        queue = rig.queue(f"q{number}")
        for part in "ab":
            rig.deliver(queue, f"/{number}{part}")

    another.tick(rig.desk.now)
    rig.step()
    for _ in range(6):
        other.answer(200)
        another.tick(rig.desk.now)
        rig.answer(200)

    sent = rig.sent() + paths(other.sent)
    assert Counter(sent) == {f"/{number}{part}": 1 for number in range(6) for part in "ab"}
    assert len(other.sent) >= 3


def test_many_queues_take_few_transactions(rig: Rig):
    for number in range(60):
        rig.deliver(rig.queue(f"q{number}"), f"/{number}")
    counted = Counted(rig.desk.store)
    sender = FakeSender()
    rig.desk.store = counted
    pusher = rig.another(sender, concurrency=60)

    pusher.tick(rig.desk.now)
    sender.answer(200)
    pusher.tick(rig.desk.now)

    assert len(sender.sent) == 60
    assert counted.calls["act"] == 1
    assert counted.calls["claim_all"] == 2
    assert counted.calls["read"] <= 4
    assert counted.calls["claim"] == 0


def test_a_wake_up_rings_for_deliveries_and_soon_not_for_others(rig: Rig):
    rung: list[int] = []
    finder = Finder(rig.desk.store, scan_ms=1_000_000, ring=lambda: rung.append(1))
    ours, others = rig.queue(), rig.desk.queue("mail")
    finder.look(now=rig.desk.now)

    finder.heard({ours.queue_no: 1, others.queue_no: 1})
    found = finder.look(now=rig.desk.now)
    finder.heard({others.queue_no: 5})
    finder.heard({ours.queue_no: 0})

    assert (found.heard, len(rung)) == ([ours.queue_no], 1)
    assert finder.look(now=rig.desk.now).heard == []


def test_without_a_scan_a_wake_up_is_enough(desk: Desk):
    rig = Rig(desk, scan_ms=1_000_000)
    queue = rig.queue()
    rig.step()
    rig.deliver(queue, "/a")
    rig.step()
    assert rig.sent() == []

    rig.pusher.heard({queue.queue_no: 1})
    rig.step()

    assert rig.sent() == ["/a"]


def test_the_next_step_is_due_when_something_is_and_not_before(desk: Desk):
    rig = Rig(desk, scan_ms=100_000)
    rig.deliver(rig.queue(), "/a")
    now = desk.now

    assert rig.step() == now + LEASE_MS // 3, "a lease to be extended"
    rig.sender.answer(500)
    assert rig.step() == now + RETRY_MS, "a failure to be tried again"
    rig.clock.advance(ms=RETRY_MS)
    rig.step()
    rig.sender.answer(200)
    rig.step()
    assert rig.step() == now + 100_000, "to look for more"


def test_a_store_that_fails_loses_no_answer(rig: Rig):
    queue = rig.queue()
    rig.deliver(queue, "/a")
    rig.deliver(queue, "/b")
    troubled = Counted(rig.desk.store)
    rig.desk.store = troubled
    sender = FakeSender()
    pusher = rig.another(sender)
    pusher.tick(rig.desk.now)

    sender.answer(200)
    troubled.is_down = True
    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            pusher.tick(rig.desk.now)
    troubled.is_down = False
    pusher.tick(rig.desk.now)

    assert [ending.outcome for ending in rig.desk.endings()] == [State.DONE]
    assert paths(sender.sent) == ["/a", "/b"]


def test_a_store_that_fails_between_claim_and_permit_costs_a_lease_and_no_message(rig: Rig):
    rig.deliver(rig.queue(), "/a")
    rig.breaker()
    troubled = Counted(rig.desk.store)
    troubled.fails_after_claims = True
    rig.circuits._store = troubled
    with pytest.raises(StoreUnavailable):
        rig.step()
    troubled.fails_after_claims = False
    rig.step()
    assert rig.sent() == []

    rig.clock.advance(ms=LEASE_MS)
    rig.reap()
    rig.step()

    assert rig.sent() == ["/a"]


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
