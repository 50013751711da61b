"""Browsing the messages of a queue, by state and page by page, without changing them."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.edge.instants import to_text
from penstock.operations.paging import to_cursor
from tests.clocks import ManualClock
from tests.edge.api import Api, assert_refused, ok

STATES = ["ready", "waiting", "leased", "dead"]


def pages(api: Api, path: str, what: str, **query: Any) -> list[list[dict[str, Any]]]:
    found = []
    while True:
        page = api.get(path, **query)
        found.append(page[what])
        if page["next"] is None:
            return found
        query["cursor"] = page["next"]


def seven_in_state(api: Api, queue: str, state: str) -> list[str]:
    """Their ids in the order in which that state is listed."""
    if state == "waiting":
        return [api.send(queue, n, delay_ms=60_000 + n) for n in reversed(range(7))][::-1]
    ids = [api.send(queue, n) for n in range(7)]
    if state == "leased":
        for n in range(7):
            api.claim_one(queue, lease_ms=70_000 - n)
        return ids[::-1]
    if state == "dead":
        for claimed in api.claim(queue, limit=7):
            ok(api.act(claimed["receipt"], "bury"))
    return ids


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("limit", [1, 3, 7, 100])
def test_pages_follow_each_other_without_gap_or_repetition(
    api: Api, state: str, limit: int
) -> None:
    queue = api.make_queue()
    ids = seven_in_state(api, queue, state)

    found = pages(api, f"/v1/queues/{queue}/messages", "messages", state=state, limit=limit)

    assert [message["id"] for page in found for message in page] == ids
    assert {message["state"] for page in found for message in page} == {state}
    assert max(map(len, found)) <= limit


def test_by_default_the_ready_ones_are_shown_in_the_order_of_their_turn(api: Api) -> None:
    queue = api.make_queue()
    later, sooner = api.send(queue, priority=1), api.send(queue, priority=-1)
    api.send(queue, delay_ms=60_000)

    shown = api.get(f"/v1/queues/{queue}/messages")["messages"]

    assert [message["id"] for message in shown] == [sooner, later]


def test_messages_that_are_blocked_by_their_group_come_last(api: Api) -> None:
    queue = api.make_queue(ordering="group")
    ids = [api.send(queue, n, group=group) for n, group in enumerate(("a", "a", "b"))]

    found = pages(api, f"/v1/queues/{queue}/messages", "messages", limit=1)

    shown = [message for page in found for message in page]
    assert [message["id"] for message in shown] == [ids[0], ids[2], ids[1]]
    assert [message.get("is_blocked", False) for message in shown] == [False, False, True]


def test_reading_changes_nothing(api: Api) -> None:
    queue = api.make_queue()
    api.send(queue, "x", kind="k")
    before = api.queue(queue)

    first = api.get(f"/v1/queues/{queue}/messages")
    second = api.get(f"/v1/queues/{queue}/messages")

    assert first == second
    assert api.queue(queue) == before
    assert (first["messages"][0]["body"], first["messages"][0]["kind"]) == ("x", "k")


def test_browsing_shows_no_receipts(api: Api) -> None:
    queue = api.make_queue()
    api.send(queue)
    claimed = api.claim_one(queue, claimed_by="worker-1")

    [shown] = api.get(f"/v1/queues/{queue}/messages", state="leased")["messages"]

    assert claimed["receipt"] not in str(shown)
    assert "receipt" not in shown
    assert shown["leased_by"] == "worker-1"
    assert shown["leased_until"] == claimed["leased_until"]


def test_a_waiting_message_shows_when_it_is_due(api: Api, clock: ManualClock) -> None:
    queue = api.make_queue()
    api.send(queue, delay_ms=5_000)

    [shown] = api.get(f"/v1/queues/{queue}/messages", state="waiting")["messages"]

    assert shown["due_at"] == to_text(clock.now() + 5_000)


@pytest.mark.parametrize(
    "query",
    [
        "state=done",
        "state=READY",
        "state=",
        "limit=0",
        "limit=1001",
        "limit=1.5",
        "cursor=x",
        "cursor=AAAA",
        "cursor=WzFd",  # a cursor of another list
        "cursor=WzEsMiwiYSJd",
        "order=desc",
        "state=ready&state=dead",
        "state=%ff",
        "state=%00",
    ],
)
def test_an_invalid_query_is_refused(api: Api, query: str) -> None:
    queue = api.make_queue()

    refused = api.call("GET", f"/v1/queues/{queue}/messages?{query}")

    assert_refused(refused, 400, "invalid_request")


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("number", [0, -1, 2**31, -(2**61), 2**61])
def test_a_cursor_that_points_nowhere_still_shows_a_page(api: Api, state: str, number: int) -> None:
    queue = api.make_queue()
    cursor = to_cursor(number, number, number, number)

    page = api.get(f"/v1/queues/{queue}/messages", state=state, cursor=cursor)

    assert page == {"messages": [], "next": None}


def test_a_list_with_previews_has_the_beginning_of_each_body_and_no_more(api: Api) -> None:
    queue = api.make_queue(max_attempts=2)
    body = {"text": "x" * 100_000}
    message_id = api.send(queue, body, attributes={"a": "b" * 1_000}, tags=["preview"])
    ok(api.act(api.claim_one(queue)["receipt"], "fail", error="E: 1\n  at a.py:2", retry_in_ms=0))

    for path, query in (
        (f"/v1/queues/{queue}/messages", {}),
        ("/v1/messages", {"queue": queue, "tag": "preview"}),
    ):
        response = api.call("GET", path, params={"preview": 20, **query})
        [listed] = ok(response)["messages"]
        assert (listed["id"], listed["preview"]) == (message_id, '{"text":"' + "x" * 11)
        assert not listed.keys() & {"body", "attributes", "last_error"}
        assert (listed["error_line"], listed["size"] > 100_000) == ("E: 1 at a.py:2", True)
        assert len(response.content) < 1_000
        refused = api.call("GET", path, params={"preview": 0, **query})
        assert_refused(refused, 400, "invalid_request")
    assert api.message(message_id)["body"] == body
