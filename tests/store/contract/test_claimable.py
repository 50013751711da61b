"""Which queues waiting claims should look at, and when, for many queues at once."""

import pytest

from penstock.domain.queue.queue import Ordering
from penstock.ports.store import Claimable
from tests.store.driver import StoreDriver


def claimable(driver: StoreDriver) -> list[Claimable]:
    nos = [queue.queue_no for queue in driver.queues]
    return sorted(driver.read(lambda s: s.queues.claimable(nos)), key=lambda one: one.queue_no)


def test_queues_without_messages_are_not_named(driver: StoreDriver) -> None:
    for n in range(3):
        driver.queue(f"empty-{n}")

    assert claimable(driver) == []


def test_ready_messages_and_the_next_due_date_are_reported(driver: StoreDriver) -> None:
    ready, delayed, leased = driver.queue("ready"), driver.queue("delayed"), driver.queue("leased")
    driver.send(ready)
    for delay_ms in (7_000, 5_000):
        driver.send(delayed, delay_ms=delay_ms)
    driver.send(leased)
    driver.claim(leased, lease_ms=9_000)

    assert claimable(driver) == [
        Claimable(ready.queue_no, True, None),
        Claimable(delayed.queue_no, False, driver.now + 5_000),
        Claimable(leased.queue_no, False, driver.now + 9_000),
    ]


def test_messages_behind_others_of_their_group_cannot_be_claimed(driver: StoreDriver) -> None:
    queue = driver.queue("orders", ordering=Ordering.GROUP)
    for _ in range(2):
        driver.send(queue, group="a")
    driver.claim(queue, lease_ms=1_000)

    assert claimable(driver) == [Claimable(queue.queue_no, False, driver.now + 1_000)]


@pytest.mark.parametrize("is_held", [False, True])
def test_paused_and_held_queues_are_not_named(driver: StoreDriver, is_held: bool) -> None:
    queue = driver.queue("mail")
    driver.send(queue)
    if is_held:
        driver.write(lambda s: s.queues.hold([queue.queue_no], by="/hook"))
    else:
        driver.pause(queue)

    assert claimable(driver) == []


def test_claims_at_a_removed_queue_look_again(driver: StoreDriver) -> None:
    queue = driver.queue("mail")
    driver.pause(queue)
    driver.write(lambda s: s.queues.remove(queue.queue_no, now=driver.now))

    assert claimable(driver) == [Claimable(queue.queue_no, True, None)]
