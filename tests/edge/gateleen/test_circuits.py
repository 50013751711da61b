"""gateleen's circuit API: its paths, its JSON, its status codes."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.domain.circuit.circuit import circuit_hash
from penstock.domain.errors import StoreUnavailable
from tests.edge.api import Api
from tests.edge.gateleen.conftest import CIRCUITS, UNREACHABLE, PutRules, of, text_of
from tests.edge.live import LiveServer

A, B = "/a/(.*)", "/b/(.*)"
UNKNOWN = "0" * 32
NO_STATUS = "Body must contain a correct 'status' value"
ONLY_CLOSED = "Status can be changed to 'CLOSED' only"
CLOSED = {"status": "closed"}


@pytest.fixture
def hashes(server: LiveServer, put_rules: PutRules) -> tuple[str, str]:
    """Two circuits, the first of which is open."""
    put_rules({A: {"url": UNREACHABLE, "metricName": "a"}, B: {"url": UNREACHABLE}})
    first, second = circuit_hash(A), circuit_hash(B)
    circuits = server.broker.circuits
    circuits.force_open(first).result()
    circuits.force_open(second).result()
    circuits.close(second).result()
    return first, second


def test_all_circuits_are_listed_by_their_hashes(api: Api, hashes: tuple[str, str]) -> None:
    first, second = hashes
    expected = {
        first: {"status": "open", "infos": {"failRatio": 0, "circuit": A, "metricName": "a"}},
        second: {"status": "closed", "infos": {"failRatio": 0, "circuit": B}},
    }

    for path in (CIRCUITS, CIRCUITS.rstrip("/"), f"{CIRCUITS}_all", f"{CIRCUITS}_all/"):
        assert of(api.call("GET", path)) == (200, expected)


@pytest.mark.usefixtures("put_rules")
def test_where_there_are_none_there_is_an_empty_object(api: Api) -> None:
    assert of(api.call("GET", CIRCUITS)) == (200, {})


def test_a_circuit_is_returned_with_its_info(api: Api, hashes: tuple[str, str]) -> None:
    first, second = hashes

    assert of(api.call("GET", f"{CIRCUITS}{first}")) == (
        200,
        {"status": "open", "info": {"failRatio": 0, "circuit": A, "metricName": "a"}},
    )
    for path in (f"{CIRCUITS}{second}", f"{CIRCUITS}{second}/"):
        assert of(api.call("GET", path)) == (
            200,
            {"status": "closed", "info": {"failRatio": 0, "circuit": B}},
        )
    for path in (f"{CIRCUITS}{first}/status", f"{CIRCUITS}{first}/status/"):
        assert of(api.call("GET", path)) == (200, {"status": "open"})


@pytest.mark.parametrize("name", [UNKNOWN, "x", "%00", "a%2Fb", "é"])
def test_an_unknown_circuit_is_closed(api: Api, name: str) -> None:
    assert of(api.call("GET", f"{CIRCUITS}{name}")) == (200, {"status": "closed", "info": {}})
    assert of(api.call("GET", f"{CIRCUITS}{name}/status")) == (200, CLOSED)
    assert text_of(api.call("PUT", f"{CIRCUITS}{name}/status", CLOSED)) == (200, "")
    assert name not in api.get(CIRCUITS)


def test_a_circuit_is_closed(api: Api, hashes: tuple[str, str]) -> None:
    first, _ = hashes

    assert text_of(api.call("PUT", f"{CIRCUITS}{first}/status", {"status": "CLOSED"})) == (200, "")

    assert of(api.call("GET", f"{CIRCUITS}{first}/status")) == (200, CLOSED)


def test_all_circuits_are_closed(api: Api, server: LiveServer, hashes: tuple[str, str]) -> None:
    server.broker.circuits.force_open(hashes[1]).result()

    assert text_of(api.call("PUT", f"{CIRCUITS}_all/status", CLOSED)) == (200, "")

    assert {circuit["status"] for circuit in api.get(CIRCUITS).values()} == {"closed"}


@pytest.mark.parametrize("place", ["_all", UNKNOWN])
@pytest.mark.parametrize(
    ("body", "answer"),
    [
        (b"", (400, NO_STATUS)),
        (b"{", (400, NO_STATUS)),
        (b"\xff", (400, NO_STATUS)),
        (b"[" * 5_000, (400, NO_STATUS)),
        (b"[]", (400, NO_STATUS)),
        (b"{}", (400, NO_STATUS)),
        (b'{"status": 1}', (400, NO_STATUS)),
        (b'{"status": "shut"}', (400, NO_STATUS)),
        (b'{"status": "open"}', (403, ONLY_CLOSED)),
        (b'{"status": "half_open"}', (403, ONLY_CLOSED)),
        (b'{"status": "OPEN"}', (403, ONLY_CLOSED)),
    ],
)
def test_only_closed_is_a_status_to_be_put(
    api: Api, hashes: tuple[str, str], place: str, body: bytes, answer: tuple[int, str]
) -> None:
    assert text_of(api.call("PUT", f"{CIRCUITS}{place}/status", raw=body)) == answer

    assert of(api.call("GET", f"{CIRCUITS}{hashes[0]}/status")) == (200, {"status": "open"})


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "_all/status"),
        ("GET", "a/b"),
        ("GET", "a/status/more"),
        ("GET", "a/status//"),
        ("PUT", ""),
        ("PUT", "_all"),
        ("PUT", UNKNOWN),
        ("PUT", "a/b"),
        ("POST", ""),
        ("POST", "_all/status"),
        ("DELETE", UNKNOWN),
        ("PATCH", f"{UNKNOWN}/status"),
        ("OPTIONS", "_all"),
    ],
)
def test_anything_else_is_not_allowed(api: Api, method: str, path: str) -> None:
    assert text_of(api.call(method, f"{CIRCUITS}{path}")) == (405, "Method Not Allowed")


def test_a_store_that_does_not_respond_is_reported_as_in_gateleen(
    api: Api, server: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unavailable(*_: Any) -> Any:
        raise StoreUnavailable("cannot reach db.internal:5432")

    for name in ("all", "find", "status", "close", "close_all"):
        monkeypatch.setattr(server.broker.circuits, name, unavailable)

    text = "the store is unavailable; try again"
    for path in ("", "_all", UNKNOWN, f"{UNKNOWN}/status"):
        assert text_of(api.call("GET", f"{CIRCUITS}{path}")) == (404, text), "no address leaks"
    for path in ("_all/status", f"{UNKNOWN}/status"):
        assert text_of(api.call("PUT", f"{CIRCUITS}{path}", CLOSED)) == (500, text)
