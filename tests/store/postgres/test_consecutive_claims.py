"""Consecutive claims by several nodes: none waits, and no group is split."""

import threading

import psycopg
import pytest

from penstock.domain.limits import DAY
from penstock.domain.message.lifecycle import Message
from tests.store.counter_checks import check_counters
from tests.store.driver import StoreDriver
from tests.store.postgres.helpers import at_once, slot_of

LOCK_SLOT = "SELECT pg_advisory_xact_lock(1885697140, {})"
LOCK_ROW = "SELECT 1 FROM message WHERE id = '{}' FOR UPDATE"


@pytest.fixture
def orders(driver):
    return driver.queue(ordering="group", lease_ms=DAY)


def take_ids(driver, queue, limit=10):
    return [message.id for message in driver.claim(queue, limit, in_a_row=True)]


def test_only_the_head_of_a_locked_group_is_taken(driver, orders, postgres_url):
    a1, a2, b1, b2 = (driver.send(orders, group=group) for group in "aabb")

    with psycopg.connect(postgres_url) as other:
        other.execute(LOCK_SLOT.format(slot_of(postgres_url, orders, "a")).encode())

        assert take_ids(driver, orders) == [a1, b1, b2]

    assert driver.get(a2).is_blocked


def test_a_run_stops_at_a_locked_message(driver, orders, postgres_url):
    a1, a2, _, b1 = (driver.send(orders, group=group) for group in "aaab")

    with psycopg.connect(postgres_url) as other:
        other.execute(LOCK_ROW.format(a2).encode())

        assert take_ids(driver, orders) == [a1, b1]


def test_a_locked_head_is_skipped_with_its_group(driver, orders, postgres_url):
    a1, _, b1, b2 = (driver.send(orders, group=group) for group in "aabb")

    with psycopg.connect(postgres_url) as other:
        other.execute(LOCK_ROW.format(a1).encode())

        assert take_ids(driver, orders) == [b1, b2]


def test_heads_that_were_locked_and_not_needed_are_announced(driver, orders):
    for group in "aaabc":
        driver.send(orders, group=group)
    received: list[dict[int, int]] = []
    driver.store.listen(lambda woken: received.append(dict(woken)))

    take_ids(driver, orders, 3)
    assert received == [{orders.queue_no: 2}]

    take_ids(driver, orders, 3)
    assert len(received) == 1


def test_groups_stay_whole_and_in_order_with_several_nodes(drivers):
    """Four senders and six finishers on two nodes; claims of both kinds, ends in any order."""
    orders = drivers[0].queue(ordering="group", lease_ms=DAY)
    guard = threading.Lock()
    holders: dict[str, int] = {}
    begun: dict[str, list[int]] = {}
    torn: list[str] = []
    done = 0

    def send(driver: StoreDriver, sender: int) -> None:
        for n in range(60):
            driver.send(orders, group=f"{sender}-{n % 2}", kind=str(n))

    def begin(claim_no: int, held: list[Message]) -> None:
        with guard:
            for m in held:
                group = str(m.group)
                torn.extend([group] if holders.setdefault(group, claim_no) != claim_no else [])
                begun.setdefault(group, []).append(int(str(m.kind)))

    def finish(driver: StoreDriver, finisher: int) -> None:
        nonlocal done
        claim_no = finisher
        while done < 4 * 60:
            claim_no += 100
            held = driver.claim(orders, 1 + claim_no % 7, in_a_row=finisher % 3 > 0)
            begin(claim_no, held)
            with guard:  # before they are completed: then others may claim from the group
                for group in {m.group for m in held}:
                    holders.pop(str(group), None)
                done += len(held)
            for m in held if finisher % 2 else reversed(held):
                driver.complete(m)

    work = [lambda i=i: send(drivers[i % 2], i) for i in range(4)]
    work += [lambda i=i: finish(drivers[i % 2], i) for i in range(6)]
    at_once(*work)

    assert torn == []
    assert begun == {f"{s}-{g}": list(range(g, 60, 2)) for s in range(4) for g in range(2)}
    check_counters(drivers[0])


def test_consecutive_claims_and_purges_do_not_deadlock(drivers):
    orders = drivers[0].queue(ordering="group", lease_ms=0, max_attempts=None)
    for _ in range(10):
        drivers[0].send_many(orders, 20, group="a")
        drivers[0].send_many(orders, 20, group="b")

    def purge(driver: StoreDriver) -> None:
        for _ in range(10):
            driver.write(lambda s: s.messages.purge(orders.queue_no, limit=30, now=driver.now))

    def claim(driver: StoreDriver) -> None:
        for _ in range(20):
            driver.claim(orders, 5, in_a_row=True)

    at_once(*[lambda d=d: purge(d) for d in drivers], *[lambda d=d: claim(d) for d in drivers * 2])

    check_counters(drivers[0])
