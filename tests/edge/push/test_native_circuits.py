"""Routes, circuits and the breaker's settings in the native API."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.domain.circuit import circuit_hash
from tests.clocks import ManualClock
from tests.edge.api import Api, assert_refused, told
from tests.edge.live import LiveServer
from tests.edge.push.conftest import NOBODY

SHOP = circuit_hash("/shop/(.*)")
UNKNOWN = "0" * 32

pytestmark = pytest.mark.usefixtures("shop")


def test_routes_are_listed_in_their_order(api: Api) -> None:
    first, second, _ = api.get("/v1/routes")["routes"]

    assert first == {
        "pattern": "/shop/(.*)",
        "url": f"{NOBODY}/$1",
        "circuit": SHOP,
        "timeout_ms": 120_000,
        "metric_name": "shop",
    }
    assert (second["pattern"], second["methods"]) == ("/post/.*", ["POST"])


def test_routes_are_replaced_as_a_whole(api: Api) -> None:
    answer = told(
        api.call("PUT", "/v1/routes", {"rules": {"/b": {"url": NOBODY}, "/a": {"url": NOBODY}}})
    )

    assert [route["pattern"] for route in answer["routes"]] == ["/b", "/a"]
    broken = {"rules": {"/c": {"url": NOBODY}, "/d": {"url": "ftp://d"}}}
    assert "/d" in assert_refused(api.call("PUT", "/v1/routes", broken), 400, "invalid_request")
    assert list(api.get("/admin/v1/routing/rules")) == ["/b", "/a"]


def test_a_delivery_finds_its_route(api: Api) -> None:
    found = api.get("/v1/routes/match", uri="/shop/a?b=1")

    assert (found["route"]["pattern"], found["target"]) == ("/shop/(.*)", f"{NOBODY}/a?b=1")
    assert_refused(api.call("GET", "/v1/routes/match?uri=/b"), 404, "route_not_found")
    assert_refused(api.call("GET", "/v1/routes/match"), 400, "invalid_request")


def test_a_circuit_is_opened_and_closed_by_hand(api: Api, clock: ManualClock) -> None:
    opened = told(api.call("POST", f"/v1/circuits/{SHOP}/open"))

    assert (opened["state"], opened["is_forced"], opened["metric_name"]) == ("open", True, "shop")
    assert "opened_at" in opened
    assert api.get(f"/v1/circuits/{SHOP}") == {**opened, "held_queues": []}
    assert opened in api.get("/v1/circuits")["circuits"]

    closed = told(api.call("POST", f"/v1/circuits/{SHOP}/close"))
    assert closed == {
        "hash": SHOP,
        "pattern": "/shop/(.*)",
        "state": "closed",
        "fail_ratio": 0,
        "held": 0,
        "is_forced": False,
        "reopened": 0,
        "metric_name": "shop",
    }


def test_all_circuits_are_closed_at_once(api: Api) -> None:
    told(api.call("POST", f"/v1/circuits/{SHOP}/open"))

    assert told(api.call("POST", "/v1/circuits/close")) == {"closed": 1}
    assert told(api.call("POST", "/v1/circuits/close")) == {"closed": 0}


@pytest.mark.parametrize("what", ["", "/open", "/close"])
def test_a_circuit_that_nobody_knows_is_not_found(api: Api, what: str) -> None:
    answer = api.call("POST" if what else "GET", f"/v1/circuits/{UNKNOWN}{what}")

    assert_refused(answer, 404, "circuit_not_found")


def test_a_queue_tells_which_circuit_holds_it(api: Api, server: LiveServer) -> None:
    queue = api.make_queue()
    assert "held_by" not in api.queue(queue)
    number = server.broker.queues.get(queue).result().queue.queue_no

    server.broker.store.write(lambda s: s.queues.hold([number], by=SHOP)).result()

    assert api.queue(queue)["held_by"] == SHOP
    api.send(queue)
    assert api.claim(queue) == []


def test_the_breakers_settings_are_changed_one_by_one(api: Api) -> None:
    before = api.get("/v1/breaker")
    task = {"enabled": True, "interval_ms": 5_000}

    changed = told(api.call("PATCH", "/v1/breaker", {"slow_call_ms": 500, "unlock_probes": task}))

    assert changed == {**before, "slow_call_ms": 500, "unlock_probes": task}
    assert api.get("/v1/breaker") == changed
    assert told(api.call("DELETE", "/v1/breaker")) == before


@pytest.mark.parametrize(
    "wrong",
    [
        {"error_threshold_percentage": 101},
        {"error_threshold_percentage": "90"},
        {"unlock_growth": 0.5},
        {"open_to_half_open": {"interval_ms": 0}},
        {"open_to_half_open": {"interval": 1}},
        {"nothing": 1},
        {"slow_call_ms": 0},
    ],
    ids=str,
)
def test_settings_out_of_range_are_refused(api: Api, wrong: dict[str, Any]) -> None:
    before = api.get("/v1/breaker")

    assert_refused(api.call("PATCH", "/v1/breaker", wrong), 400, "invalid_request")

    assert api.get("/v1/breaker") == before
