"""A claim takes no more bytes than one answer holds; what does not fit stays where it is."""

from typing import Any

import pytest

from penstock.domain.message.lifecycle import Message, State
from penstock.domain.queue.queue import Ordering, Queue
from penstock.store.verbs import claim_batch as shares
from tests.store.desk import WAIT_S, Desk

SIZE = 1_000
BODY = f'"{"x" * (SIZE - 2)}"'
ROOM = 3 * SIZE + SIZE // 2  # for three messages

WAYS: dict[str, dict[str, Any]] = {
    "plain": {},
    "kinds": {"kinds": ("a", "b")},
    "in_a_row": {"in_a_row": True},
    "claim_key": {"claim_key": "k"},
}


def take(desk: Desk, queue: Queue, limit: int = 100, **wanted: Any) -> list[str]:
    return [m.id for m in desk.claim(queue, limit, **{"max_bytes": ROOM, **wanted})]


def send(desk: Desk, queue: Queue, count: int, **draft: Any) -> list[str]:
    return [desk.send(queue, **{"body": BODY, "kind": "a", **draft}) for _ in range(count)]


def untouched(message: Message) -> bool:
    return (message.state, message.attempts, message.lease_no) == (State.READY, 0, 0)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("ordering", Ordering)
def test_what_does_not_fit_stays_ready_and_comes_next(
    desk: Desk, way: str, ordering: Ordering
) -> None:
    queue = desk.queue(ordering=ordering)
    group = "g" if way == "in_a_row" else None
    ids = send(desk, queue, 5, group=group)

    assert take(desk, queue, **WAYS[way]) == ids[:3]
    assert all(untouched(desk.get(message_id)) for message_id in ids[3:])
    if group is None or ordering is not Ordering.GROUP:
        assert take(desk, queue, **WAYS[way] | {"claim_key": None}) == ids[3:]


@pytest.mark.parametrize("way", WAYS)
def test_a_message_that_is_larger_than_an_answer_comes_alone(desk: Desk, way: str) -> None:
    queue = desk.queue(ordering=Ordering.GROUP)
    ids = send(desk, queue, 2)

    assert take(desk, queue, max_bytes=1, **WAYS[way]) == ids[:1]


def test_the_most_urgent_come_first(desk: Desk) -> None:
    queue = desk.queue()
    late = send(desk, queue, 2, priority=5)
    urgent = send(desk, queue, 2, priority=1, kind="b")

    assert take(desk, queue, kinds=("a", "b")) == [*urgent, late[0]]


def test_a_small_one_does_not_overtake_a_large_one_that_did_not_fit(desk: Desk) -> None:
    queue = desk.queue()
    first = send(desk, queue, 1)
    large = send(desk, queue, 1, body=f'"{"x" * ROOM}"')
    small = send(desk, queue, 1, body="1")

    assert take(desk, queue) == first
    assert take(desk, queue) == large
    assert take(desk, queue) == small


def test_runs_go_on_where_the_answer_was_full(desk: Desk) -> None:
    queue = desk.queue(ordering=Ordering.GROUP)
    first, second = (send(desk, queue, 2, group=group) for group in "ab")

    assert take(desk, queue, in_a_row=True) == [*first, second[0]]


def test_claims_that_are_served_together_all_get_something(desk: Desk) -> None:
    queue = desk.queue()
    ids = send(desk, queue, 9)

    with desk.together():
        tickets = [desk.submit_claim(queue, 100, max_bytes=ROOM) for _ in range(4)]

    given = [[m.id for m, _ in ticket.result(WAIT_S).messages] for ticket in tickets]
    assert given == [ids[:3], ids[3:6], ids[6:], []]


def test_a_transaction_reads_a_limited_number_of_bytes_and_one_message_per_claim(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shares, "MAX_TRANSACTION_BYTES", 8 * SIZE)
    queue = desk.queue()
    send(desk, queue, 12)

    with desk.together():
        tickets = [desk.submit_claim(queue, 100, max_bytes=20 * SIZE) for _ in "abc"]

    assert [len(ticket.result(WAIT_S).messages) for ticket in tickets] == [8, 1, 1]


@pytest.mark.parametrize("limit", [{"max_leased": 4}, {"is_fair": True}])
def test_limits_of_the_queue_count_what_was_taken(desk: Desk, limit: dict[str, Any]) -> None:
    queue = desk.queue(**limit)
    ids = send(desk, queue, 5, group="g")

    assert take(desk, queue) == ids[:3]
    assert take(desk, queue) == (ids[3:4] if "max_leased" in limit else ids[3:])
