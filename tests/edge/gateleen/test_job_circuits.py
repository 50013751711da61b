"""The circuits of jobs: how a worker in any language asks them and reports outcomes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from penstock.domain.circuit.circuit import circuit_hash
from tests.clocks import ManualClock
from tests.edge.api import Api, a_name, assert_refused, ok
from tests.edge.live import LiveServer

pytestmark = pytest.mark.usefixtures("_forgets_circuits")

PERMITS, OUTCOMES = "/v1/circuits/permits", "/v1/circuits/outcomes"
ON = {
    "circuit_check_enabled": True,
    "statistics_update_enabled": True,
    "min_queue_sample_count": 2,
}


@pytest.fixture
def route() -> str:
    return a_name("route")


@pytest.fixture
def watched(api: Api) -> Iterator[Api]:
    ok(api.call("PATCH", "/v1/breaker", ON))
    yield api
    ok(api.call("DELETE", "/v1/breaker"))


def ask(api: Api, *routes: str) -> list[dict[str, Any]]:
    answer = ok(api.call("POST", PERMITS, {"routes": list(routes)}))
    assert answer["is_watching"]
    found: list[dict[str, Any]] = answer["permits"]
    return found


def report(api: Api, permit: dict[str, Any], *ids: str, outcome: str | None) -> None:
    about = {name: permit[name] for name in ("route", "permit", "generation")}
    outcomes = [{**about, "id": one, "outcome": outcome} for one in ids]
    assert api.call("POST", OUTCOMES, {"outcomes": outcomes}).status_code == 204


def test_a_route_opens_is_tried_and_closes(
    watched: Api, server: LiveServer, clock: ManualClock, route: str
) -> None:
    [permit] = ask(watched, route)
    assert permit == {"route": route, "permit": "go", "generation": -1}
    report(watched, permit, "job-1", "job-2", outcome="failure")

    [held] = ask(watched, route)
    assert (held["permit"], held["wait_ms"]) == ("hold", 120_000)
    [shown] = [c for c in watched.get("/v1/circuits")["circuits"] if c["pattern"] == route]
    assert (shown["state"], shown["fail_ratio"], shown["held"]) == ("open", 100, 0)

    server.broker.circuits.half_open_all(now=clock.advance(minutes=5)).result()
    first, second = ask(watched, route) + ask(watched, route)
    assert (first["permit"], second["permit"]) == ("probe", "hold")
    report(watched, first, "job-3", outcome="success")
    assert watched.get(f"/v1/circuits/{circuit_hash(route)}")["state"] == "closed"


def test_workers_need_not_ask_while_no_circuit_is_watched(api: Api, route: str) -> None:
    answer = ok(api.call("POST", PERMITS, {"routes": [route]}))

    assert answer == {"is_watching": False, "permits": []}
    report(api, {"route": route, "permit": "go", "generation": -1}, "job", outcome="failure")
    assert api.call("GET", f"/v1/circuits/{circuit_hash(route)}").status_code == 404


def test_a_route_that_is_named_twice_gets_one_permit(watched: Api, route: str) -> None:
    assert [one["route"] for one in ask(watched, route, "other", route)] == [route, "other"]


@pytest.mark.parametrize(
    ("path", "wrong"),
    [
        (PERMITS, {}),
        (PERMITS, {"routes": []}),
        (PERMITS, {"routes": [""]}),
        (PERMITS, {"routes": ["a\0b"]}),
        (PERMITS, {"routes": ["x" * 300]}),
        (PERMITS, {"routes": ["r"] * 1_001}),
        (PERMITS, {"routes": [1]}),
        (OUTCOMES, {"outcomes": []}),
        (OUTCOMES, {"outcomes": [{"route": "r", "id": "1"}]}),
        (OUTCOMES, {"outcomes": [{"route": "r", "id": "1", "outcome": "maybe"}]}),
        (OUTCOMES, {"outcomes": [{"route": "", "id": "1", "outcome": "success"}]}),
        (OUTCOMES, {"outcomes": [{"route": "r", "id": "1", "outcome": None, "odd": 1}]}),
    ],
)
def test_an_invalid_request_is_rejected(watched: Api, path: str, wrong: Any) -> None:
    assert_refused(watched.call("POST", path, wrong), 400, "invalid_request")
