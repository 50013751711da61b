"""Claims in a row by several nodes: nobody waits for anybody, and no group is torn apart."""

import threading

import psycopg
import pytest

from penstock.domain.limits import DAY
from penstock.domain.message.lifecycle import Message
from tests.store.desk import Desk
from tests.store.postgres.helpers import at_once, slot_of
from tests.store.recount import check_books

LOCK_SLOT = "SELECT pg_advisory_xact_lock(1885697140, {})"
LOCK_ROW = "SELECT 1 FROM message WHERE id = '{}' FOR UPDATE"


@pytest.fixture
def orders(desk):
    return desk.queue(ordering="group", lease_ms=DAY)


def take_ids(desk, queue, limit=10):
    return [message.id for message in desk.claim(queue, limit, in_a_row=True)]


def test_of_a_group_that_somebody_changes_only_the_head_is_taken(desk, orders, postgres_url):
    a1, a2, b1, b2 = (desk.send(orders, group=group) for group in "aabb")

    with psycopg.connect(postgres_url) as other:
        other.execute(LOCK_SLOT.format(slot_of(postgres_url, orders, "a")).encode())

        assert take_ids(desk, orders) == [a1, b1, b2]

    assert desk.get(a2).is_blocked


def test_a_run_stops_at_a_message_that_somebody_has_locked(desk, orders, postgres_url):
    a1, a2, _, b1 = (desk.send(orders, group=group) for group in "aaab")

    with psycopg.connect(postgres_url) as other:
        other.execute(LOCK_ROW.format(a2).encode())

        assert take_ids(desk, orders) == [a1, b1]


def test_a_head_that_somebody_has_locked_is_left_with_its_group(desk, orders, postgres_url):
    a1, _, b1, b2 = (desk.send(orders, group=group) for group in "aabb")

    with psycopg.connect(postgres_url) as other:
        other.execute(LOCK_ROW.format(a1).encode())

        assert take_ids(desk, orders) == [b1, b2]


def test_heads_that_were_looked_at_and_not_needed_are_told_to_those_who_wait(desk, orders):
    for group in "aaabc":
        desk.send(orders, group=group)
    told: list[dict[int, int]] = []
    desk.store.listen(lambda woken: told.append(dict(woken)))

    take_ids(desk, orders, 3)
    assert told == [{orders.queue_no: 2}]

    take_ids(desk, orders, 3)
    assert len(told) == 1


def test_groups_stay_whole_and_in_order_whoever_sends_claims_and_finishes(desks):
    """Four senders and six finishers on two nodes; claims of both kinds, ends in any order."""
    orders = desks[0].queue(ordering="group", lease_ms=DAY)
    guard = threading.Lock()
    holders: dict[str, int] = {}
    begun: dict[str, list[int]] = {}
    torn: list[str] = []
    done = 0

    def send(desk: Desk, sender: int) -> None:
        for n in range(60):
            desk.send(orders, group=f"{sender}-{n % 2}", kind=str(n))

    def begin(claim_no: int, held: list[Message]) -> None:
        with guard:
            for m in held:
                group = str(m.group)
                torn.extend([group] if holders.setdefault(group, claim_no) != claim_no else [])
                begun.setdefault(group, []).append(int(str(m.kind)))

    def finish(desk: Desk, finisher: int) -> None:
        nonlocal done
        claim_no = finisher
        while done < 4 * 60:
            claim_no += 100
            held = desk.claim(orders, 1 + claim_no % 7, in_a_row=finisher % 3 > 0)
            begin(claim_no, held)
            with guard:  # before they are completed: then others may have the group
                for group in {m.group for m in held}:
                    holders.pop(str(group), None)
                done += len(held)
            for m in held if finisher % 2 else reversed(held):
                desk.complete(m)

    work = [lambda i=i: send(desks[i % 2], i) for i in range(4)]
    work += [lambda i=i: finish(desks[i % 2], i) for i in range(6)]
    at_once(*work)

    assert torn == []
    assert begun == {f"{s}-{g}": list(range(g, 60, 2)) for s in range(4) for g in range(2)}
    check_books(desks[0])


def test_claims_in_a_row_and_purges_do_not_wait_for_each_other(desks):
    orders = desks[0].queue(ordering="group", lease_ms=0, max_attempts=None)
    for _ in range(10):
        desks[0].send_many(orders, 20, group="a")
        desks[0].send_many(orders, 20, group="b")

    def purge(desk: Desk) -> None:
        for _ in range(10):
            desk.write(lambda s: s.messages.purge(orders.queue_no, limit=30, now=desk.now))

    def claim(desk: Desk) -> None:
        for _ in range(20):
            desk.claim(orders, 5, in_a_row=True)

    at_once(*[lambda d=d: purge(d) for d in desks], *[lambda d=d: claim(d) for d in desks * 2])

    check_books(desks[0])
