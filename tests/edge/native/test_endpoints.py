"""Subscriptions with an endpoint: their events are pushed to a URL."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.edge.api import Api, a_name, assert_refused, ok
from tests.edge.conftest import some_settings
from tests.edge.live import LiveServer
from tests.support.http_backend import Answer, Hang, HttpBackend
from tests.support.waiting import eventually

SECRET = "whsec_" + base64.b64encode(b"s" * 24).decode()


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """A client of a server that pushes."""
    with LiveServer(some_settings(tmp_path_factory.mktemp("pushing"))) as started:
        client = Api(started.url)
        yield client
        client.close()


@pytest.fixture
def receiver() -> Iterator[HttpBackend]:
    with HttpBackend() as started:
        yield started


@pytest.fixture
def topic() -> str:
    return a_name("topic")


def subscribe(api: Api, topic: str, url: str, wanted: Any = None, **endpoint: Any) -> Any:
    request = {"endpoint": {"url": url, **endpoint}, **(wanted or {})}
    return ok(api.call("PUT", f"/v1/topics/{topic}/subscriptions/hook", request))


def publish(api: Api, topic: str, body: Any, **fields: Any) -> Any:
    return ok(api.call("POST", f"/v1/topics/{topic}/events", {"body": body, **fields}))


def bodies(receiver: HttpBackend, count: int) -> list[Any]:
    return [json.loads(seen.payload)["data"] for seen in receiver.wait_for(count)]


def test_an_event_is_posted_with_its_kind_and_a_signature(
    api: Api, topic: str, receiver: HttpBackend
) -> None:
    made = subscribe(
        api,
        topic,
        f"{receiver.url}/hook",
        signing_secrets=[SECRET],
        headers={"authorization": "Bearer x"},
    )
    assert made["endpoint"]["signing_secrets"] == 1
    assert made["endpoint"]["headers"] == ["authorization"]
    assert made["endpoint"]["enabled"] is True

    published = publish(api, topic, {"order": 7}, kind="order.placed")

    [seen] = receiver.wait_for(1)
    payload = json.loads(seen.payload)
    assert (seen.method, seen.target) == ("POST", "/hook")
    assert payload["id"] == published["id"]
    assert (payload["type"], payload["topic"]) == ("order.placed", topic)
    assert payload["data"] == {"order": 7}
    assert seen.header("authorization") == "Bearer x"
    signed = f"{seen.header('webhook-id')}.{seen.header('webhook-timestamp')}.".encode()
    digest = hmac.digest(b"s" * 24, signed + seen.payload, hashlib.sha256)
    assert seen.header("webhook-signature") == f"v1,{base64.b64encode(digest).decode()}"


def test_kinds_and_filters_select_what_is_pushed(
    api: Api, topic: str, receiver: HttpBackend
) -> None:
    wanted = {"kinds": ["order.*"], "filter": {"state": ["paid"]}, "filter_scope": "body"}
    subscribe(api, topic, receiver.url, wanted)

    for state, kind in (("open", "order.a"), ("paid", "invoice"), ("paid", "order.b")):
        publish(api, topic, {"state": state, "kind": kind}, kind=kind)

    assert bodies(receiver, 1) == [{"state": "paid", "kind": "order.b"}]


def test_without_an_order_an_answer_that_does_not_come_delays_no_other_event(
    api: Api, topic: str, receiver: HttpBackend
) -> None:
    receiver.behave = lambda seen: Hang() if b'"data":0' in seen.payload else Answer()
    subscribe(api, topic, receiver.url, concurrency=3)

    for n in range(6):
        publish(api, topic, n)

    assert sorted(bodies(receiver, 6)) == list(range(6))


def test_the_events_of_a_group_are_pushed_in_order_and_groups_do_not_wait(
    api: Api, topic: str, receiver: HttpBackend
) -> None:
    receiver.behave = lambda seen: Hang() if b'"data":"slow 0"' in seen.payload else Answer()
    subscribe(api, topic, receiver.url, order="group")

    for n in range(3):
        publish(api, topic, f"slow {n}", group="slow")
        publish(api, topic, f"quick {n}", group="quick")

    seen = bodies(receiver, 4)
    assert [one for one in seen if one.startswith("quick")] == ["quick 0", "quick 1", "quick 2"]
    assert [one for one in seen if one.startswith("slow")] == ["slow 0"]


def test_strictly_ordered_events_wait_for_the_first(
    api: Api, topic: str, receiver: HttpBackend
) -> None:
    answers = iter([Answer(500), Answer(500)])
    receiver.behave = lambda seen: next(answers, Answer())
    subscribe(api, topic, receiver.url, order="strict", retry_intervals_ms=[0])

    for n in range(3):
        publish(api, topic, n, group=str(n))

    assert bodies(receiver, 5) == [0, 0, 0, 1, 2]
    assert receiver.most_at_once == 1


def test_an_endpoint_that_answers_gone_is_disabled_and_misses_nothing(
    api: Api, topic: str, receiver: HttpBackend
) -> None:
    receiver.answer(410)
    subscribe(api, topic, receiver.url, retry_intervals_ms=[0])
    publish(api, topic, "first")

    path = f"/v1/topics/{topic}/subscriptions/hook"
    eventually(lambda: api.get(path)["endpoint"]["enabled"] is False)
    publish(api, topic, "second")
    receiver.answer(200)
    seen = len(receiver.seen)
    subscribe(api, topic, receiver.url, enabled=True)

    assert sorted(bodies(receiver, seen + 2)[-2:]) == ["first", "second"]


def test_what_failed_for_good_is_replayed(api: Api, topic: str, receiver: HttpBackend) -> None:
    receiver.answer(500)
    wanted = {"settings": {"max_attempts": 1, "max_crashes": None}}
    made = subscribe(api, topic, receiver.url, wanted)
    publish(api, topic, "again")
    eventually(lambda: api.counts(made["queue"]).get("dead") == 1)
    receiver.answer(200)

    ok(api.call("POST", f"/v1/queues/{made['queue']}/redrive", {}))

    assert bodies(receiver, 2) == ["again", "again"]


def test_a_changed_endpoint_keeps_its_secrets(api: Api, topic: str, receiver: HttpBackend) -> None:
    subscribe(api, topic, "http://localhost:9/", signing_secrets=[SECRET])

    made = subscribe(api, topic, f"{receiver.url}/new")
    eventually(lambda: publish(api, topic, 1) and receiver.seen)

    assert made["endpoint"]["signing_secrets"] == 1
    assert receiver.seen[0].header("webhook-signature")


@pytest.mark.parametrize(
    ("endpoint", "code"),
    [
        ({"url": "ftp://example.org"}, "invalid_request"),
        ({"url": "http://169.254.169.254/latest"}, "invalid_request"),
        ({"url": "http://h/", "signing_secrets": ["short"]}, "invalid_request"),
        ({"url": "http://h/", "concurrency": 0}, "invalid_request"),
        ({"url": "http://h/", "headers": {"host": "x"}}, "invalid_request"),
    ],
)
def test_an_invalid_endpoint_is_rejected(
    api: Api, topic: str, endpoint: dict[str, Any], code: str
) -> None:
    answer = api.call("PUT", f"/v1/topics/{topic}/subscriptions/hook", {"endpoint": endpoint})

    assert_refused(answer, 400, code)


def test_a_subscription_keeps_its_kind_of_target(api: Api, topic: str) -> None:
    path = f"/v1/topics/{topic}/subscriptions/plain"
    ok(api.call("PUT", path, {}))

    answer = api.call("PUT", path, {"endpoint": {"url": "http://h/"}})

    assert_refused(answer, 400, "invalid_request")


def test_events_of_an_endpoint_are_not_sticky(api: Api, topic: str) -> None:
    wanted = {"endpoint": {"url": "http://h/"}, "dispatch": "sticky"}

    answer = api.call("PUT", f"/v1/topics/{topic}/subscriptions/hook", wanted)

    assert_refused(answer, 400, "invalid_request")


def test_requests_cannot_be_queued_for_an_endpoint(
    api: Api, topic: str, receiver: HttpBackend
) -> None:
    made = subscribe(api, topic, receiver.url)
    rules = {"/(.*)": {"url": "http://h/$1"}}
    assert api.call("PUT", "/admin/v1/routing/rules", rules).is_success

    answer = api.call(
        "POST", "/v1/deliveries", {"queue": made["queue"], "method": "POST", "uri": "/x"}
    )

    assert_refused(answer, 409, "not_for_deliveries")


def test_the_circuit_of_an_endpoint_holds_its_events_until_it_is_gone(
    api: Api, topic: str, receiver: HttpBackend
) -> None:
    settings = {
        "circuit_check_enabled": True,
        "statistics_update_enabled": True,
        "min_queue_sample_count": 2,
    }
    ok(api.call("PATCH", "/v1/breaker", settings))
    receiver.answer(500)
    made = subscribe(api, topic, receiver.url, retry_intervals_ms=[0])

    for n in range(3):
        publish(api, topic, n)

    route = made["endpoint"]["route"]
    eventually(lambda: _state_of(api, route) == "open")
    assert eventually(lambda: api.queue(made["queue"])["held_by"])
    path = f"/v1/topics/{topic}/subscriptions/hook"
    assert api.call("DELETE", path).status_code == 204
    assert _state_of(api, route) is None
    assert api.call("DELETE", "/v1/breaker").is_success


def _state_of(api: Api, route: str) -> str | None:
    """The state of the circuit of a route."""
    listed = api.get("/v1/circuits")["circuits"]
    return next((one["state"] for one in listed if one["pattern"] == route), None)


def test_headers_go_to_no_other_host_unless_they_are_given_again(api: Api, topic: str) -> None:
    path = f"/v1/topics/{topic}/subscriptions/hook"
    subscribe(api, topic, "http://one.example.org/a", headers={"authorization": "Bearer x"})

    subscribe(api, topic, "http://one.example.org/b")
    for url in ("http://two.example.org/", "https://one.example.org/", "http://one.example.org:1/"):
        refused = api.call("PUT", path, {"endpoint": {"url": url}})
        assert_refused(refused, 400, "invalid_request")
    assert api.get(path)["endpoint"]["url"] == "http://one.example.org/b"
    assert api.get(path)["endpoint"]["headers"] == ["authorization"]

    moved = subscribe(api, topic, "http://two.example.org/", headers={})
    assert moved["endpoint"]["headers"] == []


def test_only_the_bus_sends_to_the_queue_of_an_endpoint(
    api: Api, topic: str, receiver: HttpBackend
) -> None:
    queue = subscribe(api, topic, receiver.url, enabled=False)["queue"]
    forged = {"method": "POST", "uri": f"/topics/{topic}/subscriptions/hook", "queued_at": 0}

    sent = api.call("POST", f"/v1/queues/{queue}/messages", {"body": forged})

    assert_refused(sent, 400, "invalid_request")
    batch = {"messages": [{"body": forged}]}
    [one] = ok(api.call("POST", f"/v1/queues/{queue}/messages/batch", batch))["results"]
    assert one["error"]["code"] == "invalid_request"
    assert api.counts(queue) == {}
