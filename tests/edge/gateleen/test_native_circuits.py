"""Routes, circuits and the breaker's settings in the native API."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from penstock.domain.circuit.circuit import circuit_hash
from penstock.services.circuits.permits import PermitRequest
from tests.clocks import ManualClock
from tests.edge.api import Api, assert_refused, ok
from tests.edge.gateleen.conftest import UNREACHABLE
from tests.edge.live import LiveServer

SHOP = circuit_hash("/shop/(.*)")
UNKNOWN = "0" * 32

pytestmark = pytest.mark.usefixtures("shop")


def test_routes_are_listed_in_their_order(api: Api) -> None:
    first, second, _ = api.get("/v1/routes")["routes"]

    assert first == {
        "pattern": "/shop/(.*)",
        "url": f"{UNREACHABLE}/$1",
        "circuit": SHOP,
        "timeout_ms": 120_000,
        "metric_name": "shop",
    }
    assert (second["pattern"], second["methods"]) == ("/post/.*", ["POST"])


def test_routes_are_replaced_as_a_whole(api: Api) -> None:
    answer = ok(
        api.call(
            "PUT", "/v1/routes", {"rules": {"/b": {"url": UNREACHABLE}, "/a": {"url": UNREACHABLE}}}
        )
    )

    assert [route["pattern"] for route in answer["routes"]] == ["/b", "/a"]
    broken = {"rules": {"/c": {"url": UNREACHABLE}, "/d": {"url": "ftp://d"}}}
    assert "/d" in assert_refused(api.call("PUT", "/v1/routes", broken), 400, "invalid_request")
    assert list(api.get("/admin/v1/routing/rules")) == ["/b", "/a"]


def test_a_delivery_finds_its_route(api: Api) -> None:
    found = api.get("/v1/routes/match", uri="/shop/a?b=1")

    assert (found["route"]["pattern"], found["target"]) == ("/shop/(.*)", f"{UNREACHABLE}/a?b=1")
    assert_refused(api.call("GET", "/v1/routes/match?uri=/b"), 404, "route_not_found")
    assert_refused(api.call("GET", "/v1/routes/match"), 400, "invalid_request")


def test_a_circuit_is_opened_and_closed_by_hand(api: Api, clock: ManualClock) -> None:
    opened = ok(api.call("POST", f"/v1/circuits/{SHOP}/open"))

    assert (opened["state"], opened["is_forced"], opened["metric_name"]) == ("open", True, "shop")
    assert "opened_at" in opened
    assert api.get(f"/v1/circuits/{SHOP}") == {**opened, "held_queues": []}
    assert opened in api.get("/v1/circuits")["circuits"]

    closed = ok(api.call("POST", f"/v1/circuits/{SHOP}/close"))
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
    ok(api.call("POST", f"/v1/circuits/{SHOP}/open"))

    assert ok(api.call("POST", "/v1/circuits/close")) == {"closed": 1}
    assert ok(api.call("POST", "/v1/circuits/close")) == {"closed": 0}


@pytest.mark.parametrize("what", ["", "/open", "/close"])
def test_an_unknown_circuit_is_not_found(api: Api, what: str) -> None:
    answer = api.call("POST" if what else "GET", f"/v1/circuits/{UNKNOWN}{what}")

    assert_refused(answer, 404, "circuit_not_found")


def test_a_queue_shows_which_circuit_holds_it(api: Api, server: LiveServer) -> None:
    queue = api.make_queue()
    assert "held_by" not in api.queue(queue)
    number = server.broker.queues.get(queue).result().queue.queue_no

    server.broker.store.write(lambda s: s.queues.hold([number], by=SHOP)).result()

    assert api.queue(queue)["held_by"] == SHOP
    api.send(queue)
    assert api.claim(queue) == []


@pytest.fixture
def held(api: Api, server: LiveServer) -> list[str]:
    """Two queues that the open circuit of the shop holds."""
    ok(api.call("PATCH", "/v1/breaker", {"circuit_check_enabled": True}))
    server.broker.circuits.force_open(SHOP).result()
    names = [api.make_queue(), api.make_queue()]
    numbers = [server.broker.queues.get(name).result().queue.queue_no for name in names]
    asked = server.broker.circuits.permits(
        [PermitRequest("/shop/(.*)", no) for no in numbers]
    ).result()
    server.broker.circuits.secure(asked).result()
    assert [api.queue(name)["held_by"] for name in names] == [SHOP, SHOP]
    return sorted(names)


def test_a_resumed_queue_stays_held_and_the_answer_says_so(api: Api, held: list[str]) -> None:
    resumed = ok(api.call("POST", f"/v1/queues/{held[0]}/resume"))

    assert (resumed["is_paused"], resumed["held_by"]) == (False, SHOP)
    assert f"POST /v1/queues/{held[0]}/unhold" in resumed["note"]
    assert "note" not in ok(api.call("POST", f"/v1/queues/{held[0]}/pause"))
    assert "note" not in ok(api.call("POST", f"/v1/queues/{api.make_queue()}/resume"))


def test_one_queue_is_unheld(api: Api, held: list[str]) -> None:
    unheld = ok(api.call("POST", f"/v1/queues/{held[0]}/unhold"))

    assert "held_by" not in unheld
    assert unheld["name"] == held[0]
    assert api.queue(held[1])["held_by"] == SHOP
    assert_refused(api.call("POST", "/v1/queues/nowhere/unhold"), 404, "queue_not_found")


def test_queues_in_the_line_are_counted_until_they_are_unheld(api: Api, held: list[str]) -> None:
    ok(api.call("POST", f"/v1/circuits/{SHOP}/close"))

    found = api.get("/v1/circuits")
    assert (found["held"], found["awaiting_unhold"]) == (2, 2)
    circuit = api.get(f"/v1/circuits/{SHOP}")
    assert (circuit["held"], circuit["awaiting_unhold"], circuit["held_queues"]) == (2, 2, held)
    metrics = api.call("GET", "/metrics").text
    assert f'penstock_circuit_held_queues{{circuit="{SHOP}",route="/shop/(.*)"' in metrics
    assert "penstock_circuit_awaiting_unhold 2" in metrics

    assert ok(api.call("POST", f"/v1/circuits/{SHOP}/unhold")) == {"unheld": 2}
    assert api.get("/v1/circuits")["held"] == 0
    assert ok(api.call("POST", f"/v1/circuits/{SHOP}/unhold")) == {"unheld": 0}


def test_queues_of_a_removed_circuit_are_counted_and_unheld(api: Api, held: list[str]) -> None:
    ok(api.call("PUT", "/v1/routes", {"rules": {}}))

    assert api.get("/v1/circuits") == {"circuits": [], "held": 2, "awaiting_unhold": 2}
    text = f'penstock_circuit_held_queues{{circuit="{SHOP}",route=""}} 2'
    assert text in api.call("GET", "/metrics").text
    assert ok(api.call("POST", f"/v1/circuits/{SHOP}/unhold")) == {"unheld": 2}
    unknown = api.call("POST", f"/v1/circuits/{SHOP}/unhold")
    assert_refused(unknown, 404, "circuit_not_found")


def test_every_queue_is_unheld(api: Api, held: list[str]) -> None:
    assert ok(api.call("POST", "/v1/circuits/unhold")) == {"unheld": 2}

    assert not any("held_by" in api.queue(name) for name in held)
    [fact] = api.get("/v1/facts", subject=SHOP, kind="circuit_queues_unheld", limit=1)["facts"]
    assert fact["data"] == {"queues": 2, "by": "operator"}


def test_the_breakers_settings_are_changed_one_by_one(api: Api) -> None:
    before = api.get("/v1/breaker")
    task = {"enabled": True, "interval_ms": 5_000}

    changed = ok(api.call("PATCH", "/v1/breaker", {"slow_call_ms": 500, "unlock_probes": task}))

    assert changed == {**before, "slow_call_ms": 500, "unlock_probes": task}
    assert api.get("/v1/breaker") == changed
    assert ok(api.call("DELETE", "/v1/breaker")) == before


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


OWN = f"/v1/circuits/{SHOP}/settings"
STRIPE = circuit_hash("stripe")


@pytest.fixture
def _no_own_settings(api: Api) -> Iterator[None]:
    yield
    for one in api.get("/v1/circuits/settings")["circuits"]:
        ok(api.call("DELETE", f"/v1/circuits/{one['circuit']}/settings"))


@pytest.mark.usefixtures("_no_own_settings")
def test_a_circuit_overrides_settings_of_the_breaker(api: Api, server: LiveServer) -> None:
    defaults = api.get("/v1/breaker")
    assert api.get(OWN) == {
        "circuit": SHOP,
        "route": "/shop/(.*)",
        "overrides": {},
        "settings": defaults,
    }

    put = ok(api.call("PUT", OWN, {"error_threshold_percentage": 50, "slow_call_ms": None}))
    assert put["overrides"] == {"error_threshold_percentage": 50, "slow_call_ms": None}
    assert put["settings"] == {**defaults, "error_threshold_percentage": 50}
    changed = ok(api.call("PATCH", OWN, {"min_queue_sample_count": 5}))
    assert changed["overrides"] == {**put["overrides"], "min_queue_sample_count": 5}
    assert api.get("/v1/circuits/settings") == {"circuits": [changed]}
    assert server.broker.circuits.settings_of(SHOP).min_queue_sample_count == 5
    assert api.get("/v1/breaker") == defaults

    put = ok(api.call("PUT", OWN, {"single_probe": True}))
    assert put["overrides"] == {"single_probe": True}
    assert ok(api.call("DELETE", OWN))["overrides"] == {}
    assert api.get("/v1/circuits/settings") == {"circuits": []}


@pytest.mark.usefixtures("_no_own_settings")
def test_a_circuit_that_was_not_used_yet_is_named_by_its_route(api: Api) -> None:
    path = f"/v1/circuits/{STRIPE}/settings"
    assert_refused(api.call("GET", path), 404, "circuit_not_found")
    assert_refused(api.call("PATCH", path, {"single_probe": True}), 404, "circuit_not_found")
    [circuit] = api.get("/v1/circuits", route="stripe")["circuits"]
    assert (circuit["hash"], circuit["state"]) == (STRIPE, "closed")

    changed = api.call("PATCH", path, {"single_probe": True}, params={"route": "stripe"})

    assert ok(changed)["route"] == "stripe"
    assert api.get(path)["overrides"] == {"single_probe": True}
    wrong = api.call("GET", path, params={"route": "other"})
    assert "the circuit of route 'other' is" in assert_refused(wrong, 400, "invalid_request")


def test_the_circuit_of_a_route_is_found(api: Api) -> None:
    opened = ok(api.call("POST", f"/v1/circuits/{SHOP}/open"))

    assert api.get("/v1/circuits", route="/shop/(.*)")["circuits"] == [opened]
    assert_refused(api.call("GET", "/v1/circuits?route="), 400, "invalid_request")


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
@pytest.mark.parametrize(
    "wrong",
    [
        {"error_threshold_percentage": 101},
        {"open_to_half_open": {"enabled": True}},
        {"unlock_growth": 2},
        {"nothing": 1},
    ],
    ids=str,
)
def test_overrides_out_of_range_or_of_shared_settings_are_refused(
    api: Api, method: str, wrong: dict[str, Any]
) -> None:
    assert_refused(api.call(method, OWN, wrong), 400, "invalid_request")

    assert api.get(OWN)["overrides"] == {}
