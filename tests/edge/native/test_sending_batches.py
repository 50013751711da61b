"""Several messages in one request: one transaction, a result for each."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.edge.api import Api, a_name, assert_refused, ok


def send_batch(api: Api, queue: str, drafts: Any) -> httpx.Response:
    return api.call("POST", f"/v1/queues/{queue}/messages/batch", {"messages": drafts})


def test_a_batch_is_answered_with_a_result_for_each_in_order(api: Api) -> None:
    queue = api.make_queue()

    results = ok(send_batch(api, queue, [{"body": n} for n in range(5)]))["results"]

    assert [result["is_duplicate"] for result in results] == [False] * 5
    claimed = api.claim(queue, limit=10)
    assert [m["body"] for m in claimed] == [0, 1, 2, 3, 4]
    assert [m["id"] for m in claimed] == [result["id"] for result in results]


def test_one_bad_draft_spoils_no_other(api: Api) -> None:
    queue = api.make_queue(max_body_bytes=10)
    drafts = [{"body": 1}, {"bodi": 1}, {"body": "x" * 20}, {"body": 2, "priority": "x"}, 5]

    sent = send_batch(api, queue, drafts)

    assert sent.status_code == 200
    first, *others = sent.json()["results"]
    assert first["is_duplicate"] is False
    codes = [other["error"]["code"] for other in others]
    assert codes == ["invalid_request", "too_large", "invalid_request", "invalid_request"]
    assert api.counts(queue) == {"ready": 1}


def test_a_batch_of_nothing_but_bad_drafts_stores_nothing(api: Api) -> None:
    queue = api.make_queue()

    results = ok(send_batch(api, queue, [{}, {"body": 1, "x": 1}]))["results"]

    assert [result["error"]["code"] for result in results] == ["invalid_request"] * 2
    assert api.counts(queue) == {}


def test_a_key_given_twice_in_one_batch_is_one_message(api: Api) -> None:
    queue = api.make_queue()

    results = ok(send_batch(api, queue, [{"body": n, "dedup_key": "k"} for n in (1, 2)]))

    first, second = results["results"]
    assert (first["is_duplicate"], second["is_duplicate"]) == (False, True)
    assert first["id"] == second["id"]
    assert api.counts(queue) == {"ready": 1}


def test_a_batch_fills_a_queue_up_to_its_limit(api: Api) -> None:
    queue = api.make_queue(max_messages=2)

    results = ok(send_batch(api, queue, [{"body": n} for n in range(4)]))["results"]

    assert [result.get("error", {}).get("code") for result in results] == [
        None,
        None,
        "queue_full",
        "queue_full",
    ]


@pytest.mark.parametrize("size", [0, 1_001])
def test_a_batch_has_1_to_1000_entries(api: Api, size: int) -> None:
    queue = api.make_queue()

    assert_refused(send_batch(api, queue, [{"body": 1}] * size), 400, "invalid_request")
    assert api.counts(queue) == {}


@pytest.mark.parametrize("drafts", [None, {}, "x", {"0": {"body": 1}}])
def test_a_batch_is_a_list(api: Api, drafts: Any) -> None:
    assert_refused(send_batch(api, api.make_queue(), drafts), 400, "invalid_request")


def test_a_batch_to_an_unknown_queue_is_refused_as_a_whole(api: Api) -> None:
    assert_refused(send_batch(api, a_name("none"), [{"body": 1}]), 404, "queue_not_found")


def test_a_batch_may_hold_bodies_of_some_megabytes(api: Api) -> None:
    queue = api.make_queue()

    results = ok(send_batch(api, queue, [{"body": "x" * 1_000_000}] * 10))["results"]

    assert all("id" in result for result in results)
    assert len(api.claim_one(queue)["body"]) == 1_000_000
