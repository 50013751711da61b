"""Notifications over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from tests.edge.api import Api, a_name, assert_refused, ok

PATH = "/v1/notifications"


@pytest.fixture
def queue(api: Api) -> str:
    return api.make_queue()


def record(api: Api, queue: str, body: Any = "x", **fields: Any) -> dict[str, Any]:
    fields.setdefault("delay_ms", 3_600_000)
    return dict(ok(api.call("POST", PATH, {"queue": queue, "body": body, **fields})))


def find(api: Api, **query: Any) -> list[str]:
    return [one["id"] for one in api.get(PATH, **query)["notifications"]]


def test_it_is_recorded_and_read_back(api: Api, queue: str) -> None:
    tags = [a_name("account"), "tenant"]
    made = record(
        api,
        queue,
        {"invoice": 7},
        delay_ms=None,
        due_at="2031-01-01T00:00:00.000Z",
        kind="invoice.due",
        tags=tags,
        user_token="u-1",
        attributes={"mine": "1"},
    )

    shown = api.get(f"{PATH}/{made['id']}")

    assert made["due_at"] == "2031-01-01T00:00:00.000Z"
    assert shown == {
        "id": made["id"],
        "queue": queue,
        "state": "waiting",
        "sent_at": shown["sent_at"],
        "due_at": "2031-01-01T00:00:00.000Z",
        "body": {"invoice": 7},
        "kind": "invoice.due",
        "tags": tags,
        "user_token": "u-1",
        "future_user_token": made["future_user_token"],
        "attributes": {"mine": "1"},
    }


def test_it_is_found_by_its_tags_and_by_its_outcome(api: Api, queue: str, clock) -> None:
    account = a_name("account")
    due = record(api, queue, delay_ms=0, tags=[account, "t"])["id"]
    future = record(api, queue, tags=[account, "t"])["id"]

    assert find(api, tag1=account, tag2="t") == [due, future]
    assert find(api, tag=account, queue=queue, which="future") == [due, future]
    assert find(api, tag1=account, due_before=clock.now() + 1) == [due]
    claimed = api.claim_one(queue)
    assert find(api, tag1=account, which="leased") == [due]
    assert find(api, tag1=account, which="future") == [future]
    ok(api.act(claimed["receipt"], "complete"))
    assert find(api, tag1=account) == [future]
    past = api.get(f"{PATH}/history", tag1=account, tag2="t")["notifications"]
    assert [(one["id"], one["state"]) for one in past] == [(due, "done")]
    assert past[0]["due_at"] == past[0]["sent_at"]


def test_pages_follow_each_other(api: Api, queue: str) -> None:
    account = a_name("account")
    made = [record(api, queue, tags=[account])["id"] for _ in range(5)]

    seen: list[str] = []
    query: dict[str, Any] = {"tag1": account, "limit": 2}
    while True:
        page = api.get(PATH, **query)
        seen += [one["id"] for one in page["notifications"]]
        if page["next"] is None:
            break
        query["cursor"] = page["next"]

    assert seen == made


def test_messages_of_any_sort_are_found_by_their_tags(api: Api, queue: str) -> None:
    tag = a_name("tag")
    plain = api.send(queue, tags=["other", tag])
    made = record(api, queue, tags=[tag])["id"]

    found = api.get("/v1/messages", tag=tag)["messages"]

    assert [one["id"] for one in found] == [plain, made]


def test_date_body_and_tags_are_changed(api: Api, queue: str) -> None:
    account = a_name("account")
    made = record(api, queue, "old", tags=["x"])["id"]

    ok(api.call("PATCH", f"{PATH}/{made}", {"body": None, "tags": [account, "t"]}))
    ok(api.call("PATCH", f"{PATH}/{made}", {"due_at": "2032-01-01T00:00:00Z"}))

    [found] = api.get(PATH, tag1=account)["notifications"]
    assert found["due_at"] == "2032-01-01T00:00:00.000Z"
    assert "body" not in found or found["body"] is None


def test_a_notification_that_failed_shows_both_dates(api: Api, queue: str) -> None:
    account = a_name("account")
    made = record(api, queue, delay_ms=0, tags=[account])
    ok(api.act(api.claim_one(queue)["receipt"], "fail", error="no", retry_in_ms=60_000))

    [found] = api.get(PATH, tag1=account)["notifications"]

    assert found["due_at"] == made["due_at"]
    assert found["next_due_at"] > found["due_at"]
    assert found["failures"] == 1


def test_one_and_all_are_removed(api: Api, queue: str) -> None:
    account = a_name("account")
    made = [record(api, queue, tags=[account, "t"])["id"] for _ in range(3)]

    assert ok(api.call("DELETE", f"{PATH}/{made[0]}"))["state"] == "cancelled"
    query = {"tag1": account, "tag2": "t", "queue": queue}
    assert ok(api.call("DELETE", PATH, params=query)) == {"cancelled": 2}
    assert find(api, tag1=account) == []


def test_one_that_is_held_is_neither_changed_nor_removed(api: Api, queue: str) -> None:
    made = record(api, queue, delay_ms=0)["id"]
    api.claim_one(queue)

    assert_refused(api.call("PATCH", f"{PATH}/{made}", {"body": 1}), 409, "wrong_state")
    assert_refused(api.call("DELETE", f"{PATH}/{made}"), 409, "wrong_state")


def test_a_second_one_under_the_same_key_is_the_first(api: Api, queue: str) -> None:
    first = record(api, queue, dedup_key="k")
    again = record(api, queue, dedup_key="k")

    assert (again["id"], again["is_duplicate"]) == (first["id"], True)
    assert again["future_user_token"] is None


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("POST", PATH, {"body": 1}, 400, "invalid_request"),
        ("POST", PATH, {"queue": "nowhere", "body": 1}, 404, "queue_not_found"),
        ("POST", PATH, {"queue": "no where", "body": 1}, 400, "invalid_request"),
        ("GET", PATH, None, 400, "invalid_request"),
        ("GET", f"{PATH}?tag=x&tag1=y", None, 400, "invalid_request"),
        ("GET", f"{PATH}?tag=x&which=dead", None, 400, "invalid_request"),
        ("GET", f"{PATH}?tag=x&queue=nowhere", None, 404, "queue_not_found"),
        ("GET", f"{PATH}?tag=x&cursor=bad", None, 400, "invalid_request"),
        ("GET", f"{PATH}/history", None, 400, "invalid_request"),
        ("GET", f"{PATH}/nothing", None, 404, "message_not_found"),
        ("PATCH", f"{PATH}/nothing", {"body": 1}, 404, "message_not_found"),
        ("PATCH", f"{PATH}/nothing", {}, 400, "invalid_request"),
        ("PATCH", f"{PATH}/nothing", {"state": "done"}, 400, "invalid_request"),
        ("DELETE", f"{PATH}/nothing", None, 404, "message_not_found"),
        ("DELETE", PATH, None, 400, "invalid_request"),
        ("GET", "/v1/messages", None, 400, "invalid_request"),
    ],
)
def test_refusals(api: Api, method: str, path: str, body: Any, status: int, code: str) -> None:
    assert_refused(api.call(method, path, body), status, code)


def test_both_dates_are_too_many(api: Api, queue: str) -> None:
    wrong = {"queue": queue, "body": 1, "due_at": 1, "delay_ms": 1}

    assert_refused(api.call("POST", PATH, wrong), 400, "invalid_request")
