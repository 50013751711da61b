"""Pages of other sites cannot read AweQ's messages unless a setting names their site."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from penstock.domain.errors import InvalidRequest
from penstock.settings.values import AweqSettings, Settings, check
from tests.edge.aweq.client import AweqClient
from tests.edge.conftest import MakeServer

ELSEWHERE = "http://elsewhere.example"
CALLS = [
    ("POST", "/send-message"),
    ("GET", "/receive-message"),
    ("DELETE", "/delete-message/1"),
    ("GET", "/get-stats"),
]
PAGES = [
    {"Origin": ELSEWHERE},
    {"Origin": "null"},
    {"Sec-Fetch-Site": "cross-site"},  # an image request has no other headers
    {"Sec-Fetch-Site": "same-site"},  # another port of this machine
]


@pytest.fixture
def aweq(make_server: MakeServer) -> Iterator[AweqClient]:
    client = AweqClient(make_server().url)
    client.send("secret")
    yield client
    client.close()


def call(aweq: AweqClient, method: str, path: str, headers: dict[str, str]) -> httpx.Response:
    body = {"message": "x"} if method == "POST" else None
    return aweq.http.request(method, path, json=body, headers=headers)


def allows(answer: httpx.Response) -> str | None:
    found: str | None = answer.headers.get("access-control-allow-origin")
    return found


def test_by_default_no_page_of_another_site_reads_or_takes_anything(aweq: AweqClient) -> None:
    before = aweq.http.get("/get-stats").json()
    for method, path in CALLS:
        for headers in PAGES:
            answer = call(aweq, method, path, headers)
            assert (answer.status_code, allows(answer)) == (403, None), (method, path, headers)
        assert allows(aweq.http.options(path, headers={"Origin": ELSEWHERE})) is None

    assert aweq.http.get("/get-stats").json() == before


def test_programs_and_our_own_pages_use_it_as_before(aweq: AweqClient) -> None:
    own = {"Origin": str(aweq.http.base_url).rstrip("/"), "Sec-Fetch-Site": "same-origin"}
    for headers in ({}, own, {"Sec-Fetch-Site": "none"}):
        for method, path in CALLS:
            assert call(aweq, method, path, headers).status_code == 200


def test_one_site_can_be_allowed_and_others_stay_forbidden(make_server: MakeServer) -> None:
    aweq = AweqClient(make_server(aweq={"allow_origin": ELSEWHERE}).url)

    for method, path in CALLS:
        allowed = call(aweq, method, path, PAGES[0])
        assert (allowed.status_code, allows(allowed)) == (200, ELSEWHERE)
        assert allowed.headers["vary"] == "origin"
        assert call(aweq, method, path, {"Origin": "http://evil.example"}).status_code == 403
    aweq.close()


@pytest.mark.parametrize("origin", ["", "elsewhere.example", "http://a.example/path", "http://a b"])
def test_a_setting_that_is_not_an_origin_is_rejected(origin: str) -> None:
    with pytest.raises(InvalidRequest, match=r"aweq\.allow_origin"):
        check(Settings(aweq=AweqSettings(allow_origin=origin)))
