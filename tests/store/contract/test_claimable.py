"""Which queues waiting claims should look at, and when: asked for many queues at once."""

import pytest

from penstock.domain.queue.queue import Ordering
from penstock.ports.store import Claimable
from tests.store.desk import Desk


def claimable(desk: Desk) -> list[Claimable]:
    nos = [queue.queue_no for queue in desk.queues]
    return sorted(desk.read(lambda s: s.queues.claimable(nos)), key=lambda one: one.queue_no)


def test_queues_without_messages_are_not_named(desk: Desk) -> None:
    for n in range(3):
        desk.queue(f"empty-{n}")

    assert claimable(desk) == []


def test_ready_messages_and_the_next_due_date_are_reported(desk: Desk) -> None:
    ready, delayed, leased = desk.queue("ready"), desk.queue("delayed"), desk.queue("leased")
    desk.send(ready)
    for delay_ms in (7_000, 5_000):
        desk.send(delayed, delay_ms=delay_ms)
    desk.send(leased)
    desk.claim(leased, lease_ms=9_000)

    assert claimable(desk) == [
        Claimable(ready.queue_no, True, None),
        Claimable(delayed.queue_no, False, desk.now + 5_000),
        Claimable(leased.queue_no, False, desk.now + 9_000),
    ]


def test_messages_behind_others_of_their_group_cannot_be_claimed(desk: Desk) -> None:
    queue = desk.queue("orders", ordering=Ordering.GROUP)
    for _ in range(2):
        desk.send(queue, group="a")
    desk.claim(queue, lease_ms=1_000)

    assert claimable(desk) == [Claimable(queue.queue_no, False, desk.now + 1_000)]


@pytest.mark.parametrize("is_held", [False, True])
def test_paused_and_held_queues_are_not_named(desk: Desk, is_held: bool) -> None:
    queue = desk.queue("mail")
    desk.send(queue)
    if is_held:
        desk.write(lambda s: s.queues.hold([queue.queue_no], by="/hook"))
    else:
        desk.pause(queue)

    assert claimable(desk) == []


def test_claims_at_a_removed_queue_look_once_more(desk: Desk) -> None:
    queue = desk.queue("mail")
    desk.pause(queue)
    desk.write(lambda s: s.queues.remove(queue.queue_no, now=desk.now))

    assert claimable(desk) == [Claimable(queue.queue_no, True, None)]
