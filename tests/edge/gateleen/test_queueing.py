"""A request with x-queue is stored as it arrived, and answered once it is stored."""

from __future__ import annotations

import gzip
from typing import Any

import pytest

from penstock.domain.limits import HOUR, SECOND
from tests.clocks import ManualClock
from tests.edge.api import Api, a_name, assert_refused, ok
from tests.edge.conftest import MakeServer
from tests.edge.gateleen.conftest import (
    RULES,
    UNREACHABLE,
    PutRules,
    delivery_of,
    names,
    push,
    pushed,
)
from tests.edge.live import LiveServer
from tests.edge.raw import Raw, request

pytestmark = [pytest.mark.usefixtures("shop"), pytest.mark.both_stores]


def test_it_is_stored_as_it_came(api: Api, clock: ManualClock) -> None:
    queue = a_name("push")

    message = pushed(
        api,
        "/shop/orders/a%2Fb//c;d?x=1&y=%20",
        queue,
        method="PUT",
        content=b"\x00\xffany bytes",
        headers={"Content-Type": "application/x-odd", "X-Rp-Unique_Id": "order-17"},
    )

    delivery = delivery_of(message)
    assert (delivery.method, delivery.uri) == ("PUT", "/shop/orders/a%2Fb//c;d?x=1&y=%20")
    assert delivery.payload == b"\x00\xffany bytes"
    assert delivery.queued_at == clock.now()
    assert delivery.header("content-type") == "application/x-odd"
    assert delivery.header("x-originally-queued") == "true"
    assert message["queue"] == queue
    assert (message["kind"], message["group"], message["entity_id"], message["route"]) == (
        "delivery",
        "push",
        "order-17",
        "/shop/(.*)",
    )


def test_the_queue_is_made_for_deliveries(api: Api) -> None:
    settings = api.queue(pushed(api)["queue"])["settings"]

    assert (settings["ordering"], settings["max_attempts"], settings["max_crashes"]) == (
        "group",
        None,
        None,
    )
    assert settings["labels"] == {"penstock.push": "true"}


@pytest.mark.parametrize("method", ["DELETE", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"])
def test_every_method_but_get_is_queued(api: Api, method: str) -> None:
    assert delivery_of(pushed(api, method=method)).method == method


def test_a_get_is_not_queued(api: Api, server: LiveServer) -> None:
    queue = a_name("push")

    answer = push(api, "/shop/a", queue, method="GET")

    assert_refused(answer, 405, "method_not_allowed")
    assert answer.headers["allow"] == "DELETE, HEAD, OPTIONS, PATCH, POST, PUT"
    assert queue not in names(server)


@pytest.mark.parametrize("name", ["", "a b", "a/b", "-a", "x" * 81, "a, b", "é"])
def test_a_queue_must_be_named_and_properly(api: Api, name: str) -> None:
    answer = push(api, "/shop/a", name.encode("latin-1"))  # type: ignore[arg-type]

    assert_refused(answer, 400, "invalid_request")


def test_without_the_header_nothing_is_queued(api: Api) -> None:
    text = assert_refused(api.call("POST", "/push/shop/a"), 400, "invalid_request")

    assert "x-queue" in text


@pytest.mark.parametrize("uri", ["/other", "/shop", "/", "/xshop/a", "/x/push/shop/a"])
def test_a_request_without_a_route_is_rejected_and_creates_no_queue(
    api: Api, server: LiveServer, uri: str
) -> None:
    queue = a_name("push")

    assert_refused(push(api, uri, queue), 404, "route_not_found")

    assert queue not in names(server)


@pytest.mark.parametrize(
    "uri",
    [
        *("/shop/../admin", "/shop/%2e%2e/admin", "/shop/..%2Fadmin", "/shop/..;x/admin"),
        *("/shop/a/./b", "/shop/a#b"),
    ],
)
def test_a_uri_that_could_mean_another_place_is_refused(
    server: LiveServer, api: Api, uri: str
) -> None:
    queue = a_name("push")
    with Raw(server.port) as wire:
        answer = wire.ask(request("PUT", f"/push{uri}", b"{}", headers={"X-Queue": queue}))

    assert answer.status == 400
    assert b'"invalid_uri"' in answer.body
    native = api.call("POST", "/v1/deliveries", {"queue": queue, "uri": uri})
    assert_refused(native, 400, "invalid_uri")
    assert_refused(api.http.get("/v1/routes/match", params={"uri": uri}), 400, "invalid_uri")
    assert queue not in names(server)


def test_a_slow_pattern_does_not_block_the_server(api: Api, put_rules: PutRules) -> None:
    put_rules({"/(a+)+b": {"url": UNREACHABLE}, "/x(?!y)(a|aa)+[0-9]": {"url": UNREACHABLE}})

    assert_refused(push(api, "/" + "a" * 500, "p"), 404, "route_not_found")
    text = assert_refused(push(api, "/x" + "a" * 500, "p"), 400, "invalid_request")

    assert "/x(?!y)(a|aa)+[0-9]" in text


def test_a_method_that_its_route_does_not_take_is_refused(api: Api) -> None:
    text = assert_refused(push(api, "/post/a", "p", method="PUT"), 400, "invalid_request")

    assert text == "the route of '/post/a' takes only POST"  # although a later rule takes all
    assert delivery_of(pushed(api, "/post/a")).method == "POST"


def test_headers_of_the_connection_are_not_stored(server: LiveServer, api: Api) -> None:
    headers = {
        "X-Queue": "p",
        "Connection": "close, X-Hop",
        "X-Hop": "1",
        "TE": "trailers",
        "Proxy-Authorization": "secret",
        "Expect": "100-continue",
        "X-Kept": "2",
    }
    with Raw(server.port) as wire:
        wire.send(request("POST", "/push/shop/b?", b"{}", headers=headers))
        assert wire.answer().status == 100
        answer = wire.answer()

    delivery = delivery_of(api.message(answer.headers["x-message-id"]))
    assert delivery.uri == "/shop/b"
    assert dict(delivery.headers) == {
        "content-type": "application/json",
        "x-kept": "2",
        "x-originally-queued": "true",
    }


def test_a_key_of_ours_is_never_handed_on_and_those_of_others_are(api: Api) -> None:
    ours = pushed(api, headers={"Authorization": "bearer  pk_12_34"})
    theirs = pushed(api, headers={"Authorization": "Basic dTpw"})

    assert delivery_of(ours).header("authorization") is None
    assert delivery_of(theirs).header("authorization") == "Basic dTpw"


def test_a_login_of_the_console_is_not_handed_on(api: Api) -> None:
    token = {"X-Csrf-Token": "secret"}
    ours = delivery_of(pushed(api, headers={"Cookie": "penstock_0a1b2c3d=t", **token}))
    both = delivery_of(pushed(api, headers={"Cookie": "a=1; penstock_0a1b2c3d=t; b=2", **token}))
    theirs = delivery_of(pushed(api, headers={"Cookie": "penstock_shop=1; a=2", **token}))

    assert (ours.header("cookie"), ours.header("x-csrf-token")) == (None, None)
    assert (both.header("cookie"), both.header("x-csrf-token")) == ("a=1; b=2", None)
    assert (theirs.header("cookie"), theirs.header("x-csrf-token")) == (
        "penstock_shop=1; a=2",
        "secret",
    )


def test_a_header_in_several_lines_is_kept_whole(server: LiveServer, api: Api) -> None:
    lines = b"Host: localhost\r\nX-Queue: p\r\nAccept: a\r\nAccept: b\r\nCookie: c\r\nCookie: d\r\n"
    with Raw(server.port) as wire:
        answer = wire.ask(b"DELETE /push/shop/a HTTP/1.1\r\n" + lines + b"\r\n")

    delivery = delivery_of(api.message(answer.headers["x-message-id"]))
    assert (delivery.header("accept"), delivery.header("cookie")) == ("a,b", "c; d")


def test_a_compressed_body_is_kept_as_it_is(api: Api) -> None:
    body = gzip.compress(b"hello" * 1_000)

    delivery = delivery_of(pushed(api, content=body, headers={"Content-Encoding": "gzip"}))

    assert delivery.payload == body
    assert delivery.header("content-encoding") == "gzip"


def test_compressed_bodies_are_taken_nowhere_else(api: Api) -> None:
    headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}

    answer = api.http.put("/admin/v1/routing/rules", content=b"{}", headers=headers)

    assert_refused(answer, 415, "unsupported_media_type")


def test_a_request_without_an_id_goes_by_its_uri_however_long(api: Api) -> None:
    first, second = (f"/shop/{'x' * 2_000}{end}" for end in "12")

    ids = {pushed(api, uri)["entity_id"] for uri in (first, first, second, "/shop/short")}

    assert "/shop/short" in ids
    assert len(ids) == 3


def test_the_same_request_within_the_time_is_queued_once(api: Api, clock: ManualClock) -> None:
    queue, once = a_name("push"), {"headers": {"x-duplicate-check": "30"}, "content": b"a"}
    first = pushed(api, "/shop/a", queue, **once)

    assert pushed(api, "/shop/a", queue, **once)["id"] == first["id"]
    for uri, other in (("/shop/b", once), ("/shop/a", {**once, "content": b"b"})):
        assert pushed(api, uri, queue, **other)["id"] != first["id"]
    assert pushed(api, "/shop/a", a_name("push"), **once)["id"] != first["id"]
    assert pushed(api, "/shop/a", queue, content=b"a")["id"] != first["id"]

    clock.advance(seconds=30)
    assert pushed(api, "/shop/a", queue, **once)["id"] != first["id"]


@pytest.mark.parametrize(
    ("text", "window_ms"),
    [("soon", 60 * SECOND), ("", 60 * SECOND), ("7200", 2 * HOUR), ("0", 0), ("-5", 0)],
)
def test_how_long_a_duplicate_is_looked_for(
    api: Api, clock: ManualClock, text: str, window_ms: int
) -> None:
    queue, headers = a_name("push"), {"x-duplicate-check": text}
    first = pushed(api, "/shop/a", queue, headers=headers)["id"]
    clock.advance(ms=max(window_ms - 1, 0))
    assert (pushed(api, "/shop/a", queue, headers=headers)["id"] == first) == (window_ms > 0)

    clock.advance(ms=1)
    assert pushed(api, "/shop/a", queue, headers=headers)["id"] != first


def test_an_ordinary_queue_takes_no_deliveries(api: Api) -> None:
    ordinary = api.make_queue()
    labelled = api.make_queue(labels={"penstock.push": "true"})

    for queue in (ordinary, labelled):
        assert_refused(push(api, "/shop/a", queue), 409, "not_for_deliveries")
        assert api.counts(queue) == {}


def test_deliveries_of_a_queue_come_one_after_the_other(api: Api) -> None:
    queue = api.make_queue(ordering="group", labels={"penstock.push": "true"})
    ok(api.call("POST", f"/v1/queues/{queue}/pause"))
    ids = [pushed(api, f"/shop/{n}", queue)["id"] for n in range(3)]
    ok(api.call("POST", f"/v1/queues/{queue}/resume"))

    [first] = api.claim(queue, limit=10)
    assert first["id"] == ids[0]
    assert api.claim(queue, limit=10) == []
    ok(api.act(first["receipt"], "fail", retry_in_ms=60_000))
    assert api.claim(queue, limit=10) == []  # also while the first waits for a retry


def test_a_queue_that_is_full_is_answered_as_gateleen_does(api: Api) -> None:
    queue = api.make_queue(ordering="group", labels={"penstock.push": "true"}, max_messages=1)
    pushed(api, "/shop/a", queue)

    assert_refused(push(api, "/shop/b", queue), 500, "queue_full")

    native = {"queue": queue, "uri": "/shop/b"}
    assert_refused(api.call("POST", "/v1/deliveries", native), 409, "queue_full")


def test_a_removed_queue_is_created_again(api: Api) -> None:
    queue = pushed(api)["queue"]
    assert api.call("DELETE", f"/v1/queues/{queue}?force=true").status_code == 204

    assert pushed(api, "/shop/b", queue)["queue"] == queue


def test_pages_of_other_sites_queue_nothing(api: Api) -> None:
    for method in ("POST", "HEAD", "OPTIONS"):
        headers = {"Origin": "http://evil.example"}
        assert push(api, "/shop/a", "p", method=method, headers=headers).status_code == 403


def test_a_request_over_the_limit_is_refused(make_server: MakeServer) -> None:
    server = make_server(limits={"max_body_bytes": 1_000})
    api = Api(server.url)
    api.call("PUT", RULES, {"/.*": {"url": UNREACHABLE}})

    assert push(api, "/a", "p", content=b"x" * 700).status_code == 202
    assert_refused(push(api, "/a", "p", content=b"x" * 1_001), 413, "too_large")
    api.close()


def test_it_can_be_elsewhere_or_off(make_server: MakeServer, tmp_path: Any) -> None:
    server = make_server(push={"path": "/in/queue/", "circuits_path": "/qcb"})
    api = Api(server.url)
    api.call("PUT", RULES, {"/.*": {"url": UNREACHABLE}})

    assert api.call("POST", "/in/queue/a", headers={"x-queue": "p"}).status_code == 202
    assert api.call("GET", "/qcb").json() == {}
    assert push(api, "/a", "p").status_code == 404
    api.close()

    off = make_server(data=tmp_path / "off", push={"enabled": False})
    api = Api(off.url)
    for path in ("/push/a", RULES, "/queuecircuitbreaker/circuit/"):
        assert api.call("PUT", path).status_code == 404
    assert api.get("/v1/routes") == {"routes": []}
    api.close()
