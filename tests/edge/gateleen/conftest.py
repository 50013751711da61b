"""Rules and settings for a test on the shared servers, removed after it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from penstock.domain.delivery.delivery import Delivery, from_body
from penstock.services.circuits import transitions
from tests.edge.api import Api, a_name
from tests.edge.live import LiveServer

RULES = "/admin/v1/routing/rules"
BREAKER = "/admin/v1/circuitbreaker"
LOGGING = "/admin/v1/logging"
CIRCUITS = "/queuecircuitbreaker/circuit/"
UNREACHABLE = "http://127.0.0.1:9"  # nothing listens there

PutRules = Callable[[dict[str, Any]], None]


@pytest.fixture
def put_rules(api: Api) -> Iterator[PutRules]:
    def put(rules: dict[str, Any]) -> None:
        assert api.call("PUT", RULES, rules).status_code == 200

    assert api.call("POST", "/v1/circuits/unhold").status_code == 200  # leftovers of other tests
    yield put
    for path in (RULES, BREAKER, LOGGING):
        assert api.call("DELETE", path).status_code == 200


@pytest.fixture
def _forgets_circuits(server: LiveServer) -> Iterator[None]:
    """Remove the circuits of jobs, which no rules remove, and which other tests do not expect."""
    yield
    found = server.broker.circuits.all().result()
    patterns = {one: view.circuit.pattern for one, view in found.items()}
    now = server.clock.now()
    server.broker.store.write(
        lambda session: transitions.close_and_remove(session, patterns, now=now)
    ).result()


@pytest.fixture
def shop(put_rules: PutRules) -> None:
    """A route for everything under /shop, and one that takes POST only."""
    put_rules(
        {
            "/shop/(.*)": {"url": f"{UNREACHABLE}/$1", "metricName": "shop"},
            "/post/.*": {"url": UNREACHABLE, "methods": ["POST"]},
            "/p[a-z]*/.*": {"url": UNREACHABLE, "methods": ["PUT", "POST"]},
        }
    )


def push(api: Api, uri: str, queue: str, *, method: str = "POST", **more: Any) -> httpx.Response:
    headers = {"x-queue": queue, **more.pop("headers", {})}
    return api.http.request(method, f"/push{uri}", headers=headers, **more)


def pushed(api: Api, uri: str = "/shop/a", queue: str = "", **more: Any) -> dict[str, Any]:
    """The stored message."""
    answer = push(api, uri, queue or a_name("push"), **more)
    assert (answer.status_code, answer.content) == (202, b""), answer.text
    return api.message(answer.headers["x-message-id"])


def delivery_of(message: dict[str, Any]) -> Delivery:
    return from_body(json.dumps(message["body"]))


def names(server: LiveServer) -> set[str]:
    return {view.queue.name for view in server.broker.queues.page(limit=1_000).result()}


def of(response: httpx.Response) -> tuple[int, Any]:
    """The status and the JSON of a response."""
    return response.status_code, response.json()


def text_of(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, response.text
