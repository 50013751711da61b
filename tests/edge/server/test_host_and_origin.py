"""Without keys, only this machine has access, and pages of other sites in its browser do not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.edge.api import Api
from tests.edge.live import LiveServer
from tests.edge.native.conftest import LetIn
from tests.edge.raw import Raw, request

CHANGES = [
    ("PUT", ""),
    ("PATCH", ""),
    ("DELETE", ""),
    ("POST", "/pause"),
    ("POST", "/purge"),
    ("POST", "/messages"),
]


@pytest.fixture
def wire(server: LiveServer) -> Iterator[Raw]:
    with Raw(server.port) as connection:
        yield connection


@pytest.mark.parametrize(
    "host",
    ["localhost", "LOCALHOST", "localhost:7654", "127.0.0.1", "127.0.0.1:1", "[::1]", "[::1]:7654"],
)
def test_this_machine_has_access_under_its_own_names(wire: Raw, host: str) -> None:
    assert wire.ask(request("GET", "/v1/stats", headers={"Host": host})).status == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:7654",
        "localhost.evil.example",
        "evil.example/localhost",
        "localhost@evil.example",
        "127.0.0.1.evil.example",
        "[::1].evil.example",
        "[::2]",
        "127.0.0.2",
        "0",
    ],
)
def test_a_foreign_host_name_that_resolves_to_this_machine_is_not_served(
    wire: Raw, host: str
) -> None:
    for path in ("/v1/stats", "/healthz", "/metrics"):
        answer = wire.ask(request("GET", path, headers={"Host": host}))

        assert (answer.status, b"forbidden" in answer.body) == (403, True)


def test_http_1_1_needs_a_host(wire: Raw) -> None:
    assert wire.ask(b"GET /healthz HTTP/1.1\r\n\r\n").status == 400


def test_two_hosts_are_one_too_many(wire: Raw) -> None:
    twice = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n"

    assert wire.ask(twice).status == 400


def test_with_a_key_the_name_does_not_matter(let_in: LetIn) -> None:
    api = let_in()

    assert api.call("GET", "/v1/stats", headers={"Host": "penstock.example"}).status_code == 200


@pytest.mark.parametrize(("method", "path"), CHANGES)
@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "http://localhost:1"},
        {"Origin": "http://localhost.evil.example"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Sec-Fetch-Site": "cross-site"},
    ],
)
def test_pages_of_other_sites_can_change_nothing(
    wire: Raw, api: Api, method: str, path: str, headers: dict[str, str]
) -> None:
    queue = api.make_queue()
    before = api.queue(queue)
    body = b'{"body": 1}' if path == "/messages" else b""
    whole = request(method, f"/v1/queues/{queue}{path}", body, headers=headers)
    if headers == {"Origin": ""}:
        whole = whole.replace(b"\r\n", b"\r\nOrigin:\r\n", 1)

    answer = wire.ask(whole)

    assert (answer.status, b"forbidden" in answer.body) == (403, True)
    assert api.queue(queue) == before


def test_our_own_pages_may(wire: Raw, api: Api) -> None:
    queue = api.make_queue()
    headers = {
        "Host": "localhost:7654",
        "Origin": "http://localhost:7654",
        "Sec-Fetch-Site": "same-origin",
    }

    answer = wire.ask(
        request("POST", f"/v1/queues/{queue}/messages", b'{"body":1}', headers=headers)
    )

    assert answer.status == 201


def test_no_other_site_ever_gets_a_cors_header(wire: Raw) -> None:
    headers = {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}
    for method, path in (("OPTIONS", "/v1/queues/x/messages"), ("GET", "/v1/stats")):
        answer = wire.ask(request(method, path, headers=headers))

        assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize(
    "media",
    [
        "application/json",
        "application/json; charset=utf-8",
        "APPLICATION/JSON",
        "application/json ;x",
    ],
)
def test_json_is_taken(api: Api, media: str) -> None:
    queue = api.make_queue()

    sent = api.call(
        "POST", f"/v1/queues/{queue}/messages", raw=b'{"body":1}', headers={"Content-Type": media}
    )

    assert sent.status_code == 201


@pytest.mark.parametrize(
    "media",
    [
        None,
        "",
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/jsonp",
        "text/plain; application/json",
    ],
)
def test_nothing_but_json_is_taken(api: Api, media: str | None) -> None:
    queue = api.make_queue()
    headers = {} if media is None else {"Content-Type": media}

    for method, path in (("POST", "/messages"), ("POST", "/claims"), ("PATCH", "")):
        refused = api.call(method, f"/v1/queues/{queue}{path}", raw=b'{"body":1}', headers=headers)

        assert refused.status_code == 415
        assert refused.json()["error"]["code"] == "unsupported_media_type"
    assert api.counts(queue) == {}
