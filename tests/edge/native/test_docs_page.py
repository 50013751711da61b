"""The docs page: complete, safe to open, and its commands work."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import html
import json
import re
import subprocess
from html.parser import HTMLParser
from typing import Any

import pytest

from penstock.domain.access.api_key import Role
from penstock.edge.native.docs.api import DocsApi
from penstock.edge.native.docs.markup import el, inline
from penstock.edge.server.request import Request
from tests.edge.api import Api, a_name
from tests.edge.conftest import MakeServer
from tests.edge.live import LiveServer
from tests.edge.native.examples import commands_of, read
from tests.support.programs import need


@pytest.fixture
def page(api: Api) -> str:
    return api.call("GET", "/docs").text


def test_every_operation_and_every_schema_has_its_place(api: Api, page: str) -> None:
    document = api.get("/v1/openapi.json")
    expected = {f"schema-{name}" for name in document["components"]["schemas"]}
    for methods in document["paths"].values():
        expected |= {f"op-{operation['operationId']}" for operation in methods.values()}

    assert expected <= set(read_page(page).ids)


def test_every_link_leads_somewhere(page: str) -> None:
    found = read_page(page)

    inside = {link[1:] for link in found.links if link.startswith("#")}
    assert inside <= set(found.ids)
    assert {link for link in found.links if not link.startswith("#")} == {
        "/console",
        "/v1/openapi.json",
    }
    assert len(found.ids) == len(set(found.ids))


def test_nothing_comes_from_elsewhere_and_nothing_runs(page: str) -> None:
    found = read_page(page)

    assert found.tags.isdisjoint({"script", "iframe", "object", "embed", "form", "img", "base"})
    assert not [name for name in found.attributes if name.startswith("on") or name == "style"]
    assert "url(" not in found.style
    assert "@import" not in found.style


def test_the_policy_allows_our_style_and_nothing_else(api: Api, page: str) -> None:
    headers = api.call("GET", "/docs").headers
    digest = base64.b64encode(hashlib.sha256(read_page(page).style.encode()).digest()).decode()
    rules = dict(
        rule.strip().split(" ", 1) for rule in headers["content-security-policy"].split(";")
    )

    assert rules == {
        "default-src": "'none'",
        "style-src": f"'sha256-{digest}'",
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }
    assert headers["x-content-type-options"] == "nosniff"


def test_it_follows_the_readers_wish_for_light_or_dark_and_fits_a_phone(page: str) -> None:
    assert "prefers-color-scheme: dark" in page
    assert 'name="viewport" content="width=device-width' in page


def test_commands_name_the_server_as_the_reader_does(server: LiveServer, api: Api) -> None:
    page = api.call("GET", "/docs", headers={"Host": "localhost:1234"}).text

    assert read(commands_of(page)["getStats"]).url == "http://localhost:1234/v1/stats"


@pytest.mark.parametrize("host", [b"", b"<script>", b"a b", b"$(reboot)", b"a'b", b"x" * 300])
def test_an_invalid_host_name_is_not_repeated(host: bytes) -> None:
    docs = DocsApi([], is_key_needed=lambda: False, scheme="https")
    request = Request("GET", "/docs", b"", {b"host": host}, b"")

    page = asyncio.run(docs.page(request, lambda _: None)).body

    assert b"https://localhost/v1/openapi.json" in page
    assert not host or host not in page


def test_where_keys_are_required_the_commands_show_one(make_server: MakeServer) -> None:
    server = make_server()
    made = server.broker.keys.create("reader", roles=(Role.READ,)).result()
    server.broker.refresh_keys()
    api = Api(server.url)

    commands = commands_of(api.call("GET", "/docs").text)

    assert read(commands["getStats"], PENSTOCK_KEY="pk_1_2").run().status_code == 401
    assert read(commands["getStats"], PENSTOCK_KEY=made.secret).run().status_code == 200
    assert "PENSTOCK_KEY" not in commands["isAlive"]
    api.close()


def test_the_first_steps_can_be_followed(api: Api, page: str) -> None:
    need("curl")
    queue = a_name("steps")
    script = re.search(r"<h2>First steps</h2><pre><code>(.*?)</code>", page, re.DOTALL)
    assert script is not None
    text = html.unescape(script[1]).replace("/mail", f"/{queue}")

    done = subprocess.run(["sh", "-euc", text], capture_output=True, text=True, check=True)

    assert '"state":"done"' in done.stdout
    assert api.queue(queue)["totals"]["done"] == 1


def test_text_and_attributes_of_elements_are_escaped() -> None:
    assert el("p", "<b>", el("b", "R&D"), title='"') == (
        '<p title="&quot;">&lt;b&gt;<b>R&amp;D</b></p>'
    )
    assert inline("a `<` b") == "a <code>&lt;</code> b"


class Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.style = ""
        self._tag = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._tag = tag
        self.tags.add(tag)
        values = dict(attrs)
        self.attributes |= set(values)
        if values.get("id"):
            self.ids.append(str(values["id"]))
        if tag == "a":
            self.links.append(str(values["href"]))

    def handle_data(self, data: str) -> None:
        if self._tag == "style":
            self.style += data

    def handle_endtag(self, tag: str) -> None:
        self._tag = ""


def read_page(text: str) -> Page:
    parser = Page()
    parser.feed(text)
    return parser


def test_every_operation_has_a_call_in_python_that_works(api: Api) -> None:
    page = api.call("GET", "/docs").text
    found = re.findall(r"<summary>Python</summary><pre[^>]*><code>(.*?)</code>", page, re.DOTALL)
    calls = [html.unescape(text) for text in found]

    assert len(calls) == page.count('id="op-')
    for call in calls:
        compile(call, "docs", "exec")
    [listing] = [call for call in calls if "'GET'" in call and call.count('/v1/queues")') == 1]
    names: dict[str, Any] = {}
    exec(listing, names)
    assert names["response"].json().keys() == {"queues", "next"}


def test_example_answers_are_as_their_schemas_describe(api: Api) -> None:
    page = api.call("GET", "/docs").text
    pattern = r"<summary>Example answer</summary><pre[^>]*><code>(.*?)</code>"
    answers = [json.loads(html.unescape(text)) for text in re.findall(pattern, page, re.DOTALL)]

    assert len(answers) > 100
    [queues] = [
        one for one in answers if isinstance(one, dict) and one.keys() == {"queues", "next"}
    ]
    assert queues["queues"][0]["name"] == "mail"
    assert queues["queues"][0]["counts"].keys() == {"waiting", "ready", "leased", "dead"}
    assert "2031-01-01T09:00:00.000Z" in page


def test_the_page_leads_back_to_the_console(api: Api) -> None:
    assert '<a href="/console">‹ Console</a>' in api.call("GET", "/docs").text
