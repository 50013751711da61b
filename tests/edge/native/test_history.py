"""Finished messages: search, paging, and the whole history of one message."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.edge.instants import to_text
from penstock.operations.paging import to_cursor
from tests.clocks import ManualClock
from tests.edge.api import Api, a_name, assert_refused, ok
from tests.edge.native.test_browsing import pages


@pytest.fixture
def queue(api: Api) -> str:
    return api.make_queue()


def ids(endings: list[dict[str, Any]]) -> list[str]:
    return [ending["id"] for ending in endings]


def test_an_ending_shows_what_became_of_a_message(api: Api, queue: str, clock: ManualClock) -> None:
    sent_at = clock.now()
    message_id = api.send(
        queue, "x", kind="k", entity_id="e", tags=["s", "t"], group="g", priority=3
    )
    leased_at = clock.advance(seconds=1)
    claimed = api.claim_one(queue, claimed_by="worker-1")
    finished_at = clock.advance(seconds=1)
    ok(api.act(claimed["receipt"], "complete"))

    [ending] = api.get("/v1/history", queue=queue)["endings"]

    assert ending == {
        "id": message_id,
        "queue": queue,
        "outcome": "done",
        "sent_at": to_text(sent_at),
        "first_leased_at": to_text(leased_at),
        "leased_at": to_text(leased_at),
        "finished_at": to_text(finished_at),
        "attempts": 1,
        "failures": 0,
        "size": 3,
        "kind": "k",
        "entity_id": "e",
        "tags": ["s", "t"],
        "group": "g",
        "priority": 3,
        "leased_by": "worker-1",
    }


def test_the_newest_ending_comes_first(api: Api, queue: str, clock: ManualClock) -> None:
    found = []
    for n in range(3):
        found.append(api.finish(queue, body=n))
        clock.advance(ms=n)  # the first two end in the same millisecond

    assert ids(api.get("/v1/history", queue=queue)["endings"]) == found[::-1]


@pytest.mark.parametrize("limit", [1, 3, 7])
def test_pages_follow_each_other_without_gap_or_repetition_over_days(
    api: Api, queue: str, clock: ManualClock, limit: int
) -> None:
    found = []
    for n in range(7):
        found.append(api.finish(queue, body=n))
        clock.advance(hours=20 if n % 2 else 0)

    seen = pages(api, "/v1/history", "endings", queue=queue, limit=limit)

    assert [ending["id"] for page in seen for ending in page] == found[::-1]
    assert max(map(len, seen)) <= limit


def test_history_can_be_searched_by_what_is_known_of_a_message(api: Api, queue: str) -> None:
    kind, entity_id, tag = a_name("kind"), a_name("entity"), a_name("tag")
    wanted = api.finish(queue, kind=kind, entity_id=entity_id, tags=["other", tag])
    api.finish(queue, kind="other", entity_id="other", tags=["other"])

    for query in ({"kind": kind}, {"entity_id": entity_id}, {"tag": tag}):
        assert ids(api.get("/v1/history", **query)["endings"]) == [wanted]


def test_history_can_be_searched_by_outcome(api: Api, queue: str) -> None:
    done, dead = api.finish(queue), api.die(queue)
    cancelled = api.send(queue)
    ok(api.call("POST", f"/v1/messages/{cancelled}/cancel"))

    for outcome, expected in (("done", done), ("dead", dead), ("cancelled", cancelled)):
        found = api.get("/v1/history", queue=queue, outcome=outcome)["endings"]
        assert [(ending["id"], ending["outcome"]) for ending in found] == [(expected, outcome)]


def test_history_can_be_searched_by_time_from_including_to_excluding(
    api: Api, queue: str, clock: ManualClock
) -> None:
    times, found = [], []
    for _ in range(3):
        times.append(clock.advance(seconds=1))
        found.append(api.finish(queue))

    first_two = {"from": to_text(times[0]), "to": str(times[2])}
    assert ids(api.get("/v1/history", queue=queue, **first_two)["endings"]) == found[1::-1]
    nothing = {"from": to_text(times[1]), "to": to_text(times[1])}
    assert api.get("/v1/history", queue=queue, **nothing)["endings"] == []


def test_conditions_hold_together(api: Api, queue: str) -> None:
    kind = a_name("kind")
    api.finish(queue, kind=kind)
    dead = api.die(queue, kind=kind)
    api.die(queue, kind="other")

    found = api.get("/v1/history", queue=queue, kind=kind, outcome="dead")["endings"]

    assert ids(found) == [dead]


def test_the_history_of_a_removed_queue_is_still_there(api: Api, queue: str) -> None:
    message_id = api.finish(queue)
    api.call("DELETE", f"/v1/queues/{queue}")

    assert ids(api.get("/v1/history", queue=queue)["endings"]) == [message_id]


def test_an_unknown_queue_has_no_history(api: Api) -> None:
    assert api.get("/v1/history", queue="no-such") == {"endings": [], "next": None}


def test_the_past_of_a_message_lists_its_attempts_and_its_endings(
    api: Api, clock: ManualClock
) -> None:
    queue = api.make_queue(lease_ms=1_000)
    message_id = api.send(queue)
    ok(api.act(api.claim_one(queue, claimed_by="a")["receipt"], "fail", error="e", retry_in_ms=0))
    ok(api.act(api.claim_one(queue, claimed_by="b")["receipt"], "release"))
    ok(api.act(api.claim_one(queue, claimed_by="c")["receipt"], "snooze", delay_ms=0))
    api.claim_one(queue, claimed_by="d")
    clock.advance(seconds=1)
    ok(api.act(api.claim_one(queue, claimed_by="e")["receipt"], "complete"))

    past = api.get(f"/v1/history/{message_id}")

    assert [(a["lease_no"], a["outcome"], a["leased_by"]) for a in past["attempts"]] == [
        (1, "failed", "a"),
        (2, "released", "b"),
        (3, "snoozed", "c"),
        (4, "expired", "d"),
    ]
    assert [a.get("error") for a in past["attempts"]] == ["e", None, None, "the lease expired"]
    assert [(e["outcome"], e["attempts"], e["failures"]) for e in past["endings"]] == [
        ("done", 3, 1)
    ]


def test_a_message_that_lives_has_a_past_too(api: Api, queue: str) -> None:
    message_id = api.send(queue)
    assert api.get(f"/v1/history/{message_id}") == {"endings": [], "attempts": []}

    ok(api.act(api.claim_one(queue)["receipt"], "fail", retry_in_ms=0))

    assert len(api.get(f"/v1/history/{message_id}")["attempts"]) == 1


def test_a_message_that_died_twice_has_two_endings(api: Api, queue: str) -> None:
    message_id = api.die(queue)
    ok(api.call("POST", f"/v1/messages/{message_id}/redrive"))
    ok(api.act(api.claim_one(queue)["receipt"], "complete"))

    endings = api.get(f"/v1/history/{message_id}")["endings"]

    assert [ending["outcome"] for ending in endings] == ["done", "dead"]


@pytest.mark.parametrize("wrong", ["01890000-0000-7000-8000-000000000000", "x", "%00"])
def test_an_id_that_names_nothing_has_no_past(api: Api, wrong: str) -> None:
    assert api.call("GET", f"/v1/history/{wrong}").status_code == 404


@pytest.mark.parametrize(
    "query",
    [
        "outcome=ready",
        "outcome=",
        "from=yesterday",
        "to=",
        "from=99999999999999999999",
        "from=-1",
        "limit=0",
        "limit=1001",
        "cursor=x",
        "cursor=WzEsMiwzXQ",  # three numbers: a cursor of another list
        "kind=a&kind=b",
        "kinds=a",
        "kind=%00",
        "queue=%ff",
        "queue=",
        "queue=a%20b",
    ],
)
def test_an_invalid_query_is_refused(api: Api, query: str) -> None:
    assert_refused(api.call("GET", f"/v1/history?{query}"), 400, "invalid_request")


@pytest.mark.parametrize("number", [0, -(2**61), 2**61])
def test_a_cursor_that_points_nowhere_still_shows_a_page(api: Api, queue: str, number: int) -> None:
    page = api.get("/v1/history", queue=queue, cursor=to_cursor(number, number))

    assert page == {"endings": [], "next": None}
