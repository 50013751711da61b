"""Every request is answered, and never with 500."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.edge.api import Api
from tests.edge.gateleen.conftest import BREAKER, CIRCUITS, LOGGING, RULES, UNREACHABLE
from tests.edge.live import LiveServer
from tests.edge.raw import ClosedError, Raw, request

pytestmark = [pytest.mark.usefixtures("_forgets_circuits"), pytest.mark.both_stores]

METHODS = ("GET", "HEAD", "PUT", "POST", "DELETE", "PATCH", "OPTIONS", "TRACE", "LOCK")
HEADERS = (
    "x-queue",
    "x-rp-unique_id",
    "x-queue-expire-after",
    "x-duplicate-check",
    "x-queue-retry-4xx",
    "content-type",
    "content-encoding",
    "connection",
    "authorization",
    "x-odd",
)
FIELDS = (
    *("/a", "url", "methods", "headers", "timeout", "payload", "filters", "status", "reject"),
    *("queue", "uri", "method", "body", "request_id", "dedup_key", "rules", "unlock_growth"),
)
FEW = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

visible = st.characters(min_codepoint=0x21, max_codepoint=0x7E)
values = st.one_of(
    st.sampled_from(["", "p", "5", "-1", "9" * 30, "gzip", "keep-alive, x-odd", "Bearer pk_1_2"]),
    st.text(st.characters(min_codepoint=0x20, max_codepoint=0xFF, exclude_characters="\x7f")),
)
paths = st.one_of(st.text(visible, max_size=30), st.sampled_from(["a", "a/../b?c=%00", "%ff%2f"]))
documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(FIELDS) | st.text(max_size=10),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
bodies = st.one_of(st.binary(max_size=60), documents.map(lambda d: json.dumps(d).encode()))


@pytest.fixture(autouse=True)
def _a_route(api: Api, put_rules: object) -> None:
    api.call("PUT", RULES, {"/a.*": {"url": UNREACHABLE}, "/.*": {"url": f"{UNREACHABLE}/x"}})


def ask(server: LiveServer, raw: bytes) -> int:
    with Raw(server.port) as wire:
        try:
            return wire.ask(raw).status
        except ClosedError:  # the bytes were not a request
            return 400


@FEW
@given(
    method=st.sampled_from(METHODS),
    path=paths,
    queue=st.sampled_from(["p", "q", ""]) | values,
    headers=st.dictionaries(st.sampled_from(HEADERS), values, max_size=5),
    body=bodies,
)
def test_no_request_to_be_queued_makes_a_500(
    server: LiveServer, method: str, path: str, queue: str, headers: dict[str, str], body: bytes
) -> None:
    asked = {"X-Queue": queue, **headers}
    asked = {name: text.strip() for name, text in asked.items()}

    status = ask(server, request(method, f"/push/{path}", body, headers=asked))

    assert status < 500


@FEW
@given(
    method=st.sampled_from(METHODS),
    place=st.sampled_from([RULES, BREAKER, LOGGING, "/v1/routes", "/v1/breaker", "/v1/deliveries"]),
    body=bodies,
)
def test_no_document_makes_a_500(server: LiveServer, method: str, place: str, body: bytes) -> None:
    assert ask(server, request(method, place, body)) < 500


@FEW
@given(document=documents)
def test_no_delivery_makes_a_500(api: Api, document: object) -> None:
    fields = document if isinstance(document, dict) else {"headers": document}
    for more in ({}, {"queue": "p", "uri": "/a"}, {"queue": "p", "uri": "/a", "body": document}):
        body = json.dumps({**fields, **more}).encode()
        assert api.call("POST", "/v1/deliveries", raw=body).status_code < 500


@FEW
@given(route=st.text(max_size=20), more=documents, number=st.integers())
def test_no_outcome_of_a_job_makes_a_500(api: Api, route: str, more: object, number: int) -> None:
    api.call("PATCH", "/v1/breaker", {"statistics_update_enabled": True})
    one = {"route": route, "id": route, "outcome": "failure", "generation": number}
    for report in (one, {**one, "took_ms": number}, {**one, "outcome": more}, more):
        body = json.dumps({"outcomes": [report]}).encode()
        assert api.call("POST", "/v1/circuits/outcomes", raw=body).status_code < 500
    for asked in ([route], more):
        body = json.dumps({"routes": asked}).encode()
        assert api.call("POST", "/v1/circuits/permits", raw=body).status_code < 500


@FEW
@given(method=st.sampled_from(METHODS), path=paths, body=bodies)
def test_no_question_about_circuits_makes_a_500(
    server: LiveServer, method: str, path: str, body: bytes
) -> None:
    for place in (CIRCUITS, "/v1/circuits/"):
        assert ask(server, request(method, f"{place}{path}", body)) < 500
