"""Pages on a phone, in dark and light themes: they fit and are legible."""

from __future__ import annotations

import re
from typing import Literal

import pytest
from axe_playwright_python.base import AxeResults
from axe_playwright_python.sync_playwright import Axe

from tests.console.conftest import OpenConsole
from tests.console.driver import Console, expect
from tests.console.flows import create
from tests.edge.api import Api, a_name
from tests.edge.live import LiveServer

PAGES = {
    "overview": "/console",
    "queues": "/console/queues",
    "queue": "/console/queues/{queue}",
    "settings": "/console/queues/{queue}/settings",
    "messages": "/console/messages?queue={queue}",
    "errors": "/console/errors",
    "message": "/console/messages/{message}",
    "history": "/console/history?queue={queue}",
    "flows": "/console/flows",
    "flow": "/console/flows/{flow}",
    "members": "/console/flows/{flow}/members",
    "topics": "/console/topics",
    "topic": "/console/topics/{topic}",
    "workers": "/console/workers",
    "circuits": "/console/circuits",
    "recurring": "/console/recurring",
    "scaling": "/console/scaling",
    "insights": "/console/insights",
    "sql": "/console/sql",
    "facts": "/console/facts",
    "keys": "/console/keys",
    "server settings": "/console/settings",
    "aweq": "/console/aweq/send-message",
    "login": "/console/login",
    "nowhere": "/console/no/such/page",
}
KEEP_THREE_ROWS = """() => {
  for (const rows of document.querySelectorAll("tbody"))
    [...rows.children].slice(3).forEach((row) => row.remove());
}"""
# A rule reads the page's styles, so that another scheme needs only this one.
CONTRAST = {"runOnly": ["color-contrast"], "resultTypes": ["violations"]}


@pytest.fixture
def filled(api: Api) -> dict[str, str]:
    name = api.make_queue("a-queue-with-quite-a-long-name.that.goes.on", labels={"team": "x" * 60})
    api.send(name)
    message = api.die(name)
    flow = create(api, name, [{"name": "first"}, {"name": "m" * 60, "after": ["first"]}])
    api.call("POST", f"/v1/queues/{name}/pause")
    topic = a_name("topic")
    api.call("PUT", f"/v1/topics/{topic}/subscriptions/mailer", {"kinds": ["order.*"]})
    return {"queue": name, "topic": topic, "message": message, "flow": flow["flow"]["id"]}


@pytest.fixture(scope="module")
def axe() -> Axe:
    return Axe()


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize(
    ("width", "scheme", "other"), [(360, "dark", None), (1280, "light", "dark")]
)
def test_a_page_fits_the_screen_and_is_accessible(
    server: LiveServer,
    open_console: OpenConsole,
    filled: dict[str, str],
    axe: Axe,
    page: str,
    width: int,
    scheme: Literal["light", "dark"],
    other: Literal["light", "dark"] | None,
) -> None:
    console = open_console(server.url, width=width, scheme=scheme)
    console.open(PAGES[page].format(**filled))
    console.page.wait_for_load_state("load")
    # A hundred rows of a table are as accessible as three, and take a hundred times as long.
    console.page.evaluate(KEEP_THREE_ROWS)

    console.shoot(f"{page}-{width}-{scheme}")

    assert not console.is_too_wide()
    assert console.heading.count() == 1
    assert console.page.evaluate("document.documentElement.lang") == "en"
    assert violations(axe.run(console.page)) == []
    if other is not None:
        console.page.emulate_media(color_scheme=other)
        assert violations(axe.run(console.page, options=CONTRAST)) == []


def violations(results: AxeResults) -> list[str]:
    """One line per element: the rule, and the element."""
    return [
        f"{found['id']}: {node['html'][:200]}"
        for found in results.response["violations"]
        for node in found["nodes"]
    ]


def test_the_page_of_the_api_and_a_dialog_are_accessible(
    console: Console, axe: Axe, name: str
) -> None:
    page = console.page
    page.goto("/docs")
    # The page has two hundred cards of the same form.
    page.evaluate("document.querySelectorAll('.card').forEach((card, n) => n > 3 && card.remove())")
    page.evaluate(
        "document.querySelectorAll('nav li').forEach((item, n) => n > 9 && item.remove())"
    )
    assert violations(axe.run(page)) == []

    console.open_queue(name)
    console.ask("Send")
    assert violations(axe.run(page, context="dialog")) == []
    console.dialog.cancel()
    page.keyboard.press("Control+k")
    expect(page.get_by_role("option").first).to_be_visible()
    assert violations(axe.run(page, context="dialog")) == []


def test_a_dialog_fits_on_a_phone(
    server: LiveServer, open_console: OpenConsole, filled: dict[str, str]
) -> None:
    console = open_console(server.url, width=360, height=640)
    console.open(f"/console/queues/{filled['queue']}")

    box = console.ask("Redrive").box.bounding_box()

    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 360
    assert box["height"] <= 640
    console.shoot("dialog-360")


def test_the_theme_follows_the_system_until_one_is_chosen(
    server: LiveServer, open_console: OpenConsole
) -> None:
    console = open_console(server.url, scheme="dark")
    page = console.open("/console/queues")

    def ground() -> str:
        return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))

    dark = ground()
    switch = page.get_by_role("button", name=re.compile("^Colours"))
    switch.click()
    light = ground()
    page.reload()
    console.heading.wait_for()

    assert light != dark
    assert ground() == light, "the choice is remembered"
    switch.click()
    assert ground() == dark
    switch.click()
    expect(switch).to_have_attribute("title", "Colours: system")
    page.emulate_media(color_scheme="light")
    assert ground() == light


def test_the_side_bar_opens_and_closes_on_a_phone(
    server: LiveServer, open_console: OpenConsole
) -> None:
    console = open_console(server.url, width=360)
    page = console.open("/console/queues")
    menu = page.get_by_role("button", name="Menu")
    expect(page.get_by_role("navigation", name="Pages")).to_be_hidden()

    menu.click()
    expect(menu).to_have_attribute("aria-expanded", "true")
    page.get_by_role("link", name="Workers").click()

    expect(console.heading).to_have_text("Workers")
    expect(page.get_by_role("navigation", name="Pages")).to_be_hidden()


def test_an_unknown_page_is_reported_as_not_found(console: Console) -> None:
    console.open("/console/no/such/page")

    expect(console.heading).to_have_text("Not found")
