"""A claim takes no more bytes than fit into one answer; the rest stays in the queue."""

from typing import Any

import pytest

from penstock.domain.message.lifecycle import Message, State
from penstock.domain.queue.queue import Ordering, Queue
from penstock.store.verbs import claim_batch as shares
from tests.store.driver import WAIT_S, StoreDriver

SIZE = 1_000
BODY = f'"{"x" * (SIZE - 2)}"'
ROOM = 3 * SIZE + SIZE // 2  # for three messages

WAYS: dict[str, dict[str, Any]] = {
    "plain": {},
    "kinds": {"kinds": ("a", "b")},
    "in_a_row": {"in_a_row": True},
    "claim_key": {"claim_key": "k"},
}


def take(driver: StoreDriver, queue: Queue, limit: int = 100, **wanted: Any) -> list[str]:
    return [m.id for m in driver.claim(queue, limit, **{"max_bytes": ROOM, **wanted})]


def send(driver: StoreDriver, queue: Queue, count: int, **draft: Any) -> list[str]:
    return [driver.send(queue, **{"body": BODY, "kind": "a", **draft}) for _ in range(count)]


def untouched(message: Message) -> bool:
    return (message.state, message.attempts, message.lease_no) == (State.READY, 0, 0)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("ordering", Ordering)
def test_a_message_that_does_not_fit_stays_ready_and_comes_next(
    driver: StoreDriver, way: str, ordering: Ordering
) -> None:
    queue = driver.queue(ordering=ordering)
    group = "g" if way == "in_a_row" else None
    ids = send(driver, queue, 5, group=group)

    assert take(driver, queue, **WAYS[way]) == ids[:3]
    assert all(untouched(driver.get(message_id)) for message_id in ids[3:])
    if group is None or ordering is not Ordering.GROUP:
        assert take(driver, queue, **WAYS[way] | {"claim_key": None}) == ids[3:]


@pytest.mark.parametrize("way", WAYS)
def test_a_message_that_is_larger_than_an_answer_comes_alone(driver: StoreDriver, way: str) -> None:
    queue = driver.queue(ordering=Ordering.GROUP)
    ids = send(driver, queue, 2)

    assert take(driver, queue, max_bytes=1, **WAYS[way]) == ids[:1]


def test_the_most_urgent_come_first(driver: StoreDriver) -> None:
    queue = driver.queue()
    late = send(driver, queue, 2, priority=5)
    urgent = send(driver, queue, 2, priority=1, kind="b")

    assert take(driver, queue, kinds=("a", "b")) == [*urgent, late[0]]


def test_a_small_one_does_not_overtake_a_large_one_that_did_not_fit(driver: StoreDriver) -> None:
    queue = driver.queue()
    first = send(driver, queue, 1)
    large = send(driver, queue, 1, body=f'"{"x" * ROOM}"')
    small = send(driver, queue, 1, body="1")

    assert take(driver, queue) == first
    assert take(driver, queue) == large
    assert take(driver, queue) == small


def test_a_run_continues_where_the_answer_was_full(driver: StoreDriver) -> None:
    queue = driver.queue(ordering=Ordering.GROUP)
    first, second = (send(driver, queue, 2, group=group) for group in "ab")

    assert take(driver, queue, in_a_row=True) == [*first, second[0]]


def test_claims_that_are_served_together_all_get_something(driver: StoreDriver) -> None:
    queue = driver.queue()
    ids = send(driver, queue, 9)

    with driver.together():
        tickets = [driver.submit_claim(queue, 100, max_bytes=ROOM) for _ in range(4)]

    given = [[m.id for m, _ in ticket.result(WAIT_S).messages] for ticket in tickets]
    assert given == [ids[:3], ids[3:6], ids[6:], []]


def test_a_transaction_reads_a_limited_number_of_bytes_and_one_message_per_claim(
    driver: StoreDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shares, "MAX_TRANSACTION_BYTES", 8 * SIZE)
    queue = driver.queue()
    send(driver, queue, 12)

    with driver.together():
        tickets = [driver.submit_claim(queue, 100, max_bytes=20 * SIZE) for _ in "abc"]

    assert [len(ticket.result(WAIT_S).messages) for ticket in tickets] == [8, 1, 1]


@pytest.mark.parametrize("limit", [{"max_leased": 4}, {"is_fair": True}])
def test_limits_of_the_queue_count_what_was_taken(
    driver: StoreDriver, limit: dict[str, Any]
) -> None:
    queue = driver.queue(**limit)
    ids = send(driver, queue, 5, group="g")

    assert take(driver, queue) == ids[:3]
    assert take(driver, queue) == (ids[3:4] if "max_leased" in limit else ids[3:])
