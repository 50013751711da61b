"""Claims that complete earlier messages in the same request."""

from __future__ import annotations

import pytest

from tests.clocks import ManualClock
from tests.edge.api import Api, a_name, assert_refused, ok
from tests.edge.conftest import MakeServer

pytestmark = pytest.mark.both_stores


def turn(api: Api, queue: str, *receipts: str, **wanted: object) -> dict[str, list[dict[str, str]]]:
    body = {"complete": receipts, **wanted}
    answer: dict[str, list[dict[str, str]]] = ok(
        api.call("POST", f"/v1/queues/{queue}/claims", body)
    )
    return answer


def test_a_claim_completes_the_given_message_and_returns_the_next(api: Api) -> None:
    queue = api.make_queue()
    first, second = api.send(queue), api.send(queue)
    held = api.claim_one(queue)

    answer = turn(api, queue, held["receipt"])

    assert [(done["id"], done["state"]) for done in answer["completed"]] == [(first, "done")]
    assert [message["id"] for message in answer["messages"]] == [second]
    assert api.counts(queue) == {"leased": 1}


def test_a_claim_that_completes_nothing_has_no_completed_field(api: Api) -> None:
    assert "completed" not in turn(api, api.make_queue())


def test_each_receipt_has_its_own_result(api: Api, clock: ManualClock) -> None:
    queue, other = api.make_queue(lease_ms=10_000), api.make_queue()
    for name in (queue, other):
        api.send(name)
    elsewhere = api.claim_one(other)["receipt"]
    late = api.claim_one(queue)["receipt"]
    clock.advance(seconds=10)
    held = api.claim_one(queue)

    answer = turn(api, queue, late, "nonsense", elsewhere, held["receipt"])

    refused = [done["error"]["code"] for done in answer["completed"][:3]]  # type: ignore[index]
    assert refused == ["lease_lost"] * 3
    assert answer["completed"][3]["id"] == held["id"]
    assert api.counts(other) == {"leased": 1}, "a claim completes nothing in another queue"


def test_in_a_queue_ordered_by_group_the_next_of_the_group_is_free_at_once(api: Api) -> None:
    queue = api.make_queue(ordering="group")
    api.send(queue, "one", group="g")
    second = api.send(queue, "two", group="g")
    held = api.claim_one(queue)

    answer = turn(api, queue, held["receipt"])

    assert [message["id"] for message in answer["messages"]] == [second]


def test_a_claim_that_waits_has_completed_before(make_server: MakeServer) -> None:
    api = Api(make_server().url)  # with a clock that runs by itself
    queue = api.make_queue()
    api.send(queue)
    held = api.claim_one(queue)

    answer = turn(api, queue, held["receipt"], wait_ms=50)

    assert answer["messages"] == []
    assert [done["state"] for done in answer["completed"]] == ["done"]
    assert api.counts(queue) == {}
    api.close()


def test_a_claim_that_waits_does_not_wait_when_something_is_there(api: Api) -> None:
    queue = api.make_queue()
    api.send(queue)
    held = api.claim_one(queue)
    second = api.send(queue)

    answer = turn(api, queue, held["receipt"], wait_ms=20_000)

    assert [message["id"] for message in answer["messages"]] == [second]
    assert len(answer["completed"]) == 1


def test_a_rejected_claim_completes_nothing(api: Api) -> None:
    queue = api.make_queue()
    api.send(queue)
    held = api.claim_one(queue)

    for body in ({"limit": 0}, {"wait_ms": -1}, {"lease_ms": -1}):
        refused = api.call(
            "POST", f"/v1/queues/{queue}/claims", {"complete": [held["receipt"]], **body}
        )
        assert_refused(refused, 400, "invalid_request")
    missing = api.call("POST", f"/v1/queues/{a_name()}/claims", {"complete": [held["receipt"]]})

    assert_refused(missing, 404, "queue_not_found")
    assert api.counts(queue) == {"leased": 1}
