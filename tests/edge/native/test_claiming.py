"""Claims that do not wait."""

from __future__ import annotations

import pytest

from penstock.edge.instants import to_text
from tests.clocks import ManualClock
from tests.edge.api import Api, a_name, assert_refused, ok

pytestmark = pytest.mark.both_stores


def test_an_empty_queue_answers_at_once_with_nothing(api: Api) -> None:
    claimed = api.call("POST", f"/v1/queues/{api.make_queue()}/claims", {})

    assert (claimed.status_code, claimed.json()) == (200, {"messages": []})


def test_a_claim_needs_no_body(api: Api) -> None:
    queue = api.make_queue()
    message_id = api.send(queue)

    [claimed] = ok(api.call("POST", f"/v1/queues/{queue}/claims"))["messages"]

    assert claimed["id"] == message_id


def test_messages_are_claimed_in_the_order_in_which_they_were_sent(api: Api) -> None:
    queue = api.make_queue()
    ids = [api.send(queue, n) for n in range(5)]

    first, others = api.claim_one(queue), api.claim(queue, limit=10)

    assert [first["id"], *(m["id"] for m in others)] == ids


def test_a_claimed_message_is_not_given_to_another_claim(api: Api) -> None:
    queue = api.make_queue()
    api.send(queue)

    assert len(api.claim(queue)) == 1
    assert api.claim(queue) == []
    assert api.counts(queue) == {"leased": 1}


def test_a_lease_that_ran_out_is_given_to_the_next_one(api: Api, clock: ManualClock) -> None:
    queue = api.make_queue(lease_ms=10_000)
    api.send(queue)
    first = api.claim_one(queue)
    clock.advance(seconds=10)

    second = api.claim_one(queue)

    assert (second["id"], second["attempts"], second["lease_no"]) == (first["id"], 2, 2)
    assert second["receipt"] != first["receipt"]
    assert_refused(api.act(first["receipt"], "complete"), 409, "lease_lost")


def test_a_claim_may_name_the_length_of_its_lease(api: Api, clock: ManualClock) -> None:
    queue = api.make_queue()
    api.send(queue)

    claimed = api.claim_one(queue, lease_ms=60_000)

    assert claimed["leased_until"] == to_text(clock.now() + 60_000)


def test_a_claim_may_name_its_lease_holder(api: Api) -> None:
    queue = api.make_queue()
    message_id = api.send(queue)

    api.claim(queue, claimed_by="worker-7")

    assert api.message(message_id)["leased_by"] == "worker-7"


def test_one_message_of_a_group_at_a_time_in_order(api: Api) -> None:
    queue = api.make_queue(ordering="group")
    for n in (1, 2):
        api.send(queue, n, group="a")
    api.send(queue, 3, group="b")

    first = api.claim(queue, limit=10)
    ok(api.act(first[0]["receipt"], "complete"))
    second = api.claim(queue, limit=10)

    assert [m["body"] for m in first] == [1, 3]
    assert [m["body"] for m in second] == [2]


@pytest.mark.parametrize("wait", [{}, {"wait_ms": 5}])
def test_a_claim_with_a_key_can_be_repeated_until_something_is_done(
    api: Api, wait: dict[str, int]
) -> None:
    queue = api.make_queue()
    api.send(queue)

    first = api.claim(queue, claim_key="k", **wait)
    again = api.claim(queue, claim_key="k", **wait)
    ok(api.act(first[0]["receipt"], "complete"))
    refused = api.call("POST", f"/v1/queues/{queue}/claims", {"claim_key": "k", **wait})

    assert again == first
    assert_refused(refused, 409, "claim_not_repeatable")


def test_a_claim_may_take_a_group_in_a_row(api: Api, clock: ManualClock) -> None:
    queue = api.make_queue(ordering="group")
    for n, group in enumerate("abaa"):
        api.send(queue, n, group=group)

    held = api.claim(queue, limit=10, in_a_row=True)

    assert [m["body"] for m in held] == [0, 2, 3, 1]
    assert [m.get("is_blocked", False) for m in held] == [False, True, True, False]
    for message in held:
        ok(api.act(message["receipt"], "complete"))
    assert api.counts(queue) == {}


def test_a_claim_from_a_queue_that_was_never_seen_works_the_first_time(
    api: Api, clock: ManualClock
) -> None:
    queue = api.make_queue()
    message_id = api.send(queue)
    clock.advance(minutes=1)  # the queue is no longer cached

    assert api.claim_one(queue)["id"] == message_id


def test_a_claim_from_an_unknown_queue_is_refused(api: Api) -> None:
    for wanted in ({}, {"wait_ms": 1_000}):
        refused = api.call("POST", f"/v1/queues/{a_name('none')}/claims", wanted)

        assert_refused(refused, 404, "queue_not_found")


@pytest.mark.parametrize(
    "wanted",
    [
        {"limit": 0},
        {"limit": 1_001},
        {"wait_ms": -1},
        {"wait_ms": 20_001},
        {"lease_ms": -1},
        {"lease_ms": 12 * 3_600_000 + 1},
        {"claimed_by": ""},
        {"claimed_by": "x" * 257},
        {"claimed_by": 7},
        {"claim_key": ""},
        {"claim_key": "x" * 129},
        {"claim_key": "a\x00b"},
        {"in_a_row": "yes"},
        {"count": 1},
    ],
)
@pytest.mark.parametrize("wait", [{}, {"wait_ms": 5}])
def test_an_invalid_claim_is_refused_and_leases_no_message(
    api: Api, wanted: dict[str, object], wait: dict[str, int]
) -> None:
    queue = api.make_queue()
    api.send(queue)

    refused = api.call("POST", f"/v1/queues/{queue}/claims", {**wait, **wanted})

    assert_refused(refused, 400, "invalid_request")
    assert api.counts(queue) == {"ready": 1}
