"""Topics, subscriptions and events over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from tests.edge.api import Api, a_name, assert_refused, ok


@pytest.fixture
def topic() -> str:
    return a_name("topic")


def path(topic: str, *parts: str) -> str:
    return "/".join(("/v1/topics", topic, *parts))


def subscribe(api: Api, topic: str, name: str, **wanted: Any) -> Any:
    return ok(api.call("PUT", path(topic, "subscriptions", name), wanted))


def publish(api: Api, topic: str, body: Any = 1, **fields: Any) -> Any:
    return ok(api.call("POST", path(topic, "events"), {"body": body, **fields}))


def test_a_topic_is_made_once_and_shown(api: Api, topic: str) -> None:
    assert api.call("PUT", path(topic)).status_code == 201
    assert api.call("PUT", path(topic)).status_code == 200

    shown = api.get(path(topic))
    assert (shown["name"], shown["published"], shown["subscriptions"]) == (topic, 0, [])
    listed = api.get("/v1/topics", prefix=topic)
    assert [one["name"] for one in listed["topics"]] == [topic]
    assert "subscriptions" not in listed["topics"][0]


def test_topics_are_listed_page_by_page(api: Api, topic: str) -> None:
    for n in range(3):
        api.call("PUT", path(f"{topic}.{n}"))

    first = api.get("/v1/topics", prefix=topic, limit=2)
    second = api.get("/v1/topics", prefix=topic, limit=2, cursor=first["next"])

    names = [one["name"] for page in (first, second) for one in page["topics"]]
    assert names == [f"{topic}.{n}" for n in range(3)]


def test_a_subscription_makes_its_topic_and_its_queue(api: Api, topic: str) -> None:
    made = subscribe(
        api, topic, "mailer", kinds=["order.*"], settings={"max_attempts": 3, "ordering": "group"}
    )

    assert made == {
        "topic": topic,
        "name": "mailer",
        "queue": f"{topic}.mailer",
        "kinds": ["order.*"],
        "dispatch": "shared",
        "filter": None,
        "filter_scope": "attributes",
        "format": "event",
        "endpoint": None,
        "is_pending": False,
        "created_at": made["created_at"],
    }
    assert api.queue(f"{topic}.mailer")["settings"]["max_attempts"] == 3
    assert api.get(path(topic, "subscriptions", "mailer")) == made
    assert api.get(path(topic))["subscriptions"] == [made]


def test_a_subscription_is_changed_and_its_queue_left_as_it_is(api: Api, topic: str) -> None:
    subscribe(api, topic, "mailer", settings={"max_attempts": 3})

    answer = api.call("PUT", path(topic, "subscriptions", "mailer"), {"kinds": ["a"]})

    assert answer.status_code == 200
    assert answer.json()["kinds"] == ["a"]
    assert api.queue(f"{topic}.mailer")["settings"]["max_attempts"] == 3


def test_an_event_becomes_a_message_for_each_matching_subscription(api: Api, topic: str) -> None:
    subscribe(api, topic, "all")
    subscribe(api, topic, "orders", kinds=["order.*"])

    published = publish(api, topic, {"order": 7}, kind="order.placed", tags=["a1"])
    other = publish(api, topic, "x", kind="other")

    assert (published["messages"], published["duplicates"]) == (2, 0)
    assert other["messages"] == 1
    claimed = api.claim_one(f"{topic}.orders")
    assert (claimed["body"], claimed["kind"], claimed["tags"]) == (
        {"order": 7},
        "order.placed",
        ["a1"],
    )
    assert claimed["attributes"] == {"event.topic": topic, "event.id": published["id"]}
    assert api.counts(f"{topic}.all") == {"ready": 2}


def test_a_batch_is_published_as_a_whole(api: Api, topic: str) -> None:
    subscribe(api, topic, "a", settings={"max_messages": 2})

    answer = api.call("POST", path(topic, "events", "batch"), {"events": [{"body": 1}] * 3})
    assert_refused(answer, 409, "queue_full")
    assert api.counts(f"{topic}.a") == {}
    good = ok(api.call("POST", path(topic, "events", "batch"), {"events": [{"body": 1}] * 2}))
    assert [one["messages"] for one in good["events"]] == [1, 1]
    assert api.get(path(topic))["published"] == 2


def test_events_without_a_matching_subscription_are_counted(api: Api, topic: str) -> None:
    api.call("PUT", path(topic))

    assert publish(api, topic)["messages"] == 0
    assert api.get(path(topic))["unmatched"] == 1


def test_a_sticky_event_goes_to_the_worker_that_published_it(api: Api, topic: str) -> None:
    subscribe(api, topic, "a", dispatch="sticky")
    worker = ok(api.call("POST", "/v1/workers", {"queues": [f"{topic}.a"]}))["id"]

    publish(api, topic, "mine", node=worker)
    publish(api, topic, "anybody's")

    assert api.claim_one(f"{topic}.a--{worker}")["body"] == "mine"
    assert api.claim_one(f"{topic}.a")["body"] == "anybody's"


def test_unsubscribing_keeps_the_queue_unless_its_removal_is_requested(
    api: Api, topic: str
) -> None:
    for name in ("stays", "goes"):
        subscribe(api, topic, name)
    publish(api, topic)

    assert api.call("DELETE", path(topic, "subscriptions", "stays")).status_code == 204
    query = {"with_queue": "true"}
    gone = api.call("DELETE", path(topic, "subscriptions", "goes"), params=query)

    assert gone.status_code == 204
    assert api.counts(f"{topic}.stays") == {"ready": 1}
    assert api.call("GET", f"/v1/queues/{topic}.goes").status_code == 404
    assert api.get(path(topic))["subscriptions"] == []


def test_a_topic_with_subscriptions_is_removed_with_force_only(api: Api, topic: str) -> None:
    subscribe(api, topic, "a")

    assert_refused(api.call("DELETE", path(topic)), 409, "topic_not_empty")
    assert api.call("DELETE", path(topic), params={"force": "true"}).status_code == 204
    assert_refused(api.call("GET", path(topic)), 404, "topic_not_found")
    assert api.queue(f"{topic}.a")["name"] == f"{topic}.a"


def test_two_subscriptions_cannot_share_a_queue(api: Api, topic: str) -> None:
    subscribe(api, f"{topic}.b", "c")

    answer = api.call("PUT", path(topic, "subscriptions", "b.c"), {})

    assert_refused(answer, 409, "queue_exists")


@pytest.mark.parametrize(
    ("method", "parts", "body", "status", "code"),
    [
        ("GET", (), None, 404, "topic_not_found"),
        ("DELETE", (), None, 404, "topic_not_found"),
        ("POST", ("events",), {"body": 1}, 404, "topic_not_found"),
        ("POST", ("events",), {}, 400, "invalid_request"),
        ("POST", ("events",), {"body": 1, "due": 1}, 400, "invalid_request"),
        ("POST", ("events", "batch"), {"events": []}, 400, "invalid_request"),
        ("GET", ("subscriptions", "a"), None, 404, "topic_not_found"),
        ("PUT", ("subscriptions", "a"), {"kinds": [""]}, 400, "invalid_request"),
        ("PUT", ("subscriptions", "a"), {"dispatch": "loud"}, 400, "invalid_request"),
        ("PUT", ("subscriptions", "a" * 80), {}, 400, "invalid_request"),
        ("DELETE", ("subscriptions", "a"), None, 404, "topic_not_found"),
    ],
)
def test_refusals(
    api: Api, topic: str, method: str, parts: tuple[str, ...], body: Any, status: int, code: str
) -> None:
    assert_refused(api.call(method, path(topic, *parts), body), status, code)


def test_names_and_attributes_that_are_not_taken(api: Api, topic: str) -> None:
    subscribe(api, topic, "a")

    own = {"body": 1, "attributes": {"event.id": "x"}}
    assert_refused(api.call("POST", path(topic, "events"), own), 400, "invalid_request")
    assert_refused(api.call("PUT", "/v1/topics/no%20spaces"), 400, "invalid_request")
    missing = api.call("GET", path(topic, "subscriptions", "b"))
    assert_refused(missing, 404, "subscription_not_found")


def test_a_filter_selects_events(api: Api, topic: str) -> None:
    made = subscribe(api, topic, "eu", filter={"region": [{"prefix": "eu-"}]})
    assert made["filter"] == {"region": [{"prefix": "eu-"}]}

    matching = publish(api, topic, attributes={"region": "eu-west"})
    other = publish(api, topic, attributes={"region": "us-east"})

    assert (matching["messages"], other["messages"]) == (1, 0)
    wrong = {"filter": {"region": "eu"}}
    answer = api.call("PUT", path(topic, "subscriptions", "eu"), wrong)
    assert_refused(answer, 400, "invalid_request")
    assert "must be an object or an array" in answer.json()["error"]["message"]
