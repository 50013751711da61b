"""The files of the console: complete, safe, and cached by browsers as long as they are valid."""

from __future__ import annotations

import re

import pytest

from penstock.edge.console.api import POLICY
from tests.edge.api import Api, assert_refused
from tests.edge.conftest import MakeServer

LINKED = re.compile(r'(?:href|src)="(/console/static/[^"]+)"')


@pytest.fixture
def page(api: Api) -> str:
    return api.call("GET", "/console").text


@pytest.mark.parametrize(
    "path", ["/console", "/console/", "/console/queues/mail?a=b", "/console/x"]
)
def test_every_page_is_the_same_file(api: Api, page: str, path: str) -> None:
    answer = api.call("GET", path)

    assert answer.text == page
    assert answer.headers["content-type"] == "text/html; charset=utf-8"


def test_the_root_leads_to_the_console(api: Api) -> None:
    answer = api.call("GET", "/")

    assert (answer.status_code, answer.headers["location"]) == (302, "/console")


def test_all_that_a_page_names_is_there_and_of_the_right_kind(api: Api, page: str) -> None:
    kinds = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
    names = LINKED.findall(page)

    assert {name.rpartition(".")[2] for name in names} == set(kinds)
    for name in names:
        answer = api.call("GET", name)
        assert answer.status_code == 200, name
        assert answer.headers["content-type"].startswith(kinds[name.rpartition(".")[2]])
        assert answer.headers["content-security-policy"] == POLICY


def test_the_first_view_takes_few_requests(api: Api, page: str) -> None:
    assert len(LINKED.findall(page)) <= 5
    assert "import " not in re.findall(r"^.*", api.call("GET", script_of(page)).text)[0]


def script_of(page: str) -> str:
    [script] = [name for name in LINKED.findall(page) if name.endswith("/console.js")]
    return script


def test_files_are_compressed_once_for_browsers_that_accept_it(api: Api, page: str) -> None:
    script = script_of(page)
    plain = api.call("GET", script, headers={"accept-encoding": "identity"})
    packed = api.call("GET", script, headers={"accept-encoding": "br;q=1.0, gzip"})

    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.headers["vary"] == "accept-encoding"
    assert int(packed.headers["content-length"]) < len(plain.content) / 3
    assert packed.text == plain.text
    for tag in (plain.headers["etag"], packed.headers["etag"]):
        assert api.call("GET", script, headers={"if-none-match": tag}).status_code == 304


def test_no_page_contains_what_the_policy_would_have_to_allow(page: str) -> None:
    assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", page)
    assert re.findall(r"<script[^>]*>(.*?)</script>", page, re.DOTALL) == ["", ""]
    assert not re.search(r'(?:href|src)="(?!/)', page)


@pytest.mark.parametrize("path", ["/console", "/console/session"])
def test_nothing_from_elsewhere_may_run_load_or_frame(api: Api, path: str) -> None:
    headers = api.call("GET", path).headers
    rules = dict(rule.split(" ", 1) for rule in headers["content-security-policy"].split("; "))

    assert rules == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self' data:",
        "connect-src": "'self'",
        "form-action": "'self'",
        "frame-ancestors": "'none'",
        "base-uri": "'none'",
    }
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"


def test_a_file_is_cached_indefinitely_and_a_page_is_requested_each_time(
    api: Api, page: str
) -> None:
    file = api.call("GET", LINKED.findall(page)[0])
    shell = api.call("GET", "/console")

    assert file.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert shell.headers["cache-control"] == "no-cache"
    for answer in (file, shell):
        known = {"If-None-Match": f'"other", {answer.headers["etag"]}'}
        again = api.call("GET", str(answer.url), headers=known)
        assert (again.status_code, again.content) == (304, b"")


def test_files_of_another_version_are_not_mixed_in(api: Api, page: str) -> None:
    [name, *_] = LINKED.findall(page)
    _, _, _, version, file = name.split("/", 4)

    for path in (f"{'0' * len(version)}/{file}", f"{version}/../api.py", version, "", "%2e%2e/x"):
        answer = api.call("GET", f"/console/static/{path}")
        assert answer.status_code == 404, path


def test_it_can_be_turned_off(make_server: MakeServer) -> None:
    client = Api(make_server(console={"enabled": False}).url)

    for path in ("/console", "/console/session", "/console/queues"):
        assert_refused(client.call("GET", path), 404, "not_found")
    assert client.call("GET", "/").headers["location"] == "/docs"
    client.close()
