"""Deliveries as JSON."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.clocks import ManualClock
from tests.edge.api import Api, a_name, assert_refused, ok
from tests.edge.gateleen.conftest import delivery_of
from tests.edge.live import LiveServer
from tests.edge.raw import Raw, request

pytestmark = pytest.mark.usefixtures("shop")


def deliver(api: Api, **fields: Any) -> dict[str, Any]:
    body = {"queue": a_name("push"), "uri": "/shop/a", **fields}
    answer = api.call("POST", "/v1/deliveries", body)
    assert answer.status_code == 202, answer.text
    return dict(answer.json())


def test_a_delivery_is_stored_like_a_queued_request(api: Api, clock: ManualClock) -> None:
    queue = a_name("push")

    accepted = deliver(
        api,
        queue=queue,
        uri="/shop/orders/17?x=1",
        method="PUT",
        headers={"X-Queue-Expire-After": "10"},
        body={"status": "paid"},
        request_id="order-17",
    )

    assert (accepted["queue"], accepted["route"], accepted["is_duplicate"]) == (
        queue,
        "/shop/(.*)",
        False,
    )
    message = api.message(accepted["id"])
    delivery = delivery_of(message)
    assert (delivery.method, delivery.uri, delivery.payload) == (
        "PUT",
        "/shop/orders/17?x=1",
        b'{"status":"paid"}',
    )
    assert delivery.header("content-type") == "application/json"
    assert delivery.expire_after_s == 10
    assert delivery.queued_at == clock.now()
    assert (message["kind"], message["group"], message["entity_id"]) == (
        "delivery",
        "push",
        "order-17",
    )
    assert api.queue(queue)["settings"]["labels"] == {"penstock.push": "true"}


def test_a_payload_is_any_bytes(api: Api) -> None:
    payload = base64.b64encode(b"\x00\xff").decode()

    delivery = delivery_of(api.message(deliver(api, payload=payload)["id"]))

    assert delivery.payload == b"\x00\xff"
    assert delivery.header("content-type") is None


def test_null_is_a_body_and_a_missing_body_is_not(api: Api) -> None:
    assert delivery_of(api.message(deliver(api, body=None)["id"])).payload == b"null"
    assert delivery_of(api.message(deliver(api)["id"])).payload is None


def test_its_own_media_type_is_kept(api: Api) -> None:
    accepted = deliver(api, body=1, headers={"Content-Type": "application/vnd.odd+json"})

    headers = delivery_of(api.message(accepted["id"])).headers
    assert headers == (("Content-Type", "application/vnd.odd+json"),)


@pytest.mark.parametrize(
    "wrong",
    [
        {"method": "GET"},
        {"method": "post"},
        {"method": "PO ST"},
        {"method": "CONNECT"},
        {"uri": "shop/a"},
        {"uri": ""},
        {"uri": "http://elsewhere/shop/a"},
        {"uri": "/shop/a b"},
        {"uri": "/shop/\x00"},
        {"uri": "/shop/é"},
        {"headers": {"a b": "1"}},
        {"headers": {"a": "1\r\nb: 2"}},
        {"headers": {"": "1"}},
        {"headers": {"Transfer-Encoding": "chunked"}},
        {"headers": {"content-length": "3"}},
        {"headers": {"Host": "elsewhere"}},
        {"headers": {"a": "\u20ac"}},
        {"headers": {f"x-{n}": "1" for n in range(101)}},
        {"payload": "not base64!"},
        {"payload": "AA==", "body": 1},
        {"request_id": "a\x00b"},
        {"dedup_key": ""},
        {"expires_in_ms": -1},
        {"queue": "a b"},
        {"queue": ""},
        {"more": 1},
    ],
    ids=str,
)
def test_a_delivery_that_is_not_a_valid_request_is_rejected(
    api: Api, wrong: dict[str, Any]
) -> None:
    body = {"queue": "p", "uri": "/shop/a", **wrong}

    assert_refused(api.call("POST", "/v1/deliveries", body), 400, "invalid_request")


def test_a_delivery_that_no_route_takes_is_refused(api: Api) -> None:
    body = {"queue": a_name("push"), "uri": "/other"}

    assert_refused(api.call("POST", "/v1/deliveries", body), 404, "route_not_found")

    assert api.call("GET", f"/v1/queues/{body['queue']}").status_code == 404


def test_the_same_key_is_one_delivery(api: Api) -> None:
    queue = a_name("push")
    first = deliver(api, queue=queue, dedup_key="k")

    again = deliver(api, queue=queue, dedup_key="k", uri="/shop/b")

    assert (again["id"], again["is_duplicate"]) == (first["id"], True)


def test_it_can_expire(api: Api, clock: ManualClock) -> None:
    queue = api.make_queue(ordering="group", labels={"penstock.push": "true"})
    ok(api.call("POST", f"/v1/queues/{queue}/pause"))
    deliver(api, queue=queue, expires_in_ms=1_000)
    clock.advance(seconds=2)
    ok(api.call("POST", f"/v1/queues/{queue}/resume"))

    assert api.claim(queue) == []


@pytest.mark.parametrize("method", ["FOO", "GET", "TRACE", "CONNECT", "put", ""])
def test_a_method_that_cannot_be_queued_is_refused_by_both_ways_in(
    server: LiveServer, api: Api, method: str
) -> None:
    body = {"queue": "p", "uri": "/shop/a", "method": method}
    assert_refused(api.call("POST", "/v1/deliveries", body), 400, "invalid_request")

    if method:
        with Raw(server.port) as wire:
            answer = wire.ask(request(method, "/push/shop/a", headers={"X-Queue": "p"}))
        assert answer.status in (400, 405, 501)


def test_each_delivery_is_a_request_of_its_own_unless_its_sender_names_it(api: Api) -> None:
    def counted(**fields: Any) -> str:
        accepted = deliver(api, **fields)
        counted = delivery_of(api.message(accepted["id"])).counted_as(accepted["id"])
        return "own" if counted == accepted["id"] else counted

    assert counted() == "own"
    assert counted(request_id="order-17") == "order-17"
    assert counted(headers={"x-rp-unique_id": "order-18"}) == "order-18"
    assert len(counted(request_id="x" * 1_000)) == 256
    assert api.message(deliver(api)["id"])["entity_id"] == "/shop/a"
