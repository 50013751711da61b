"""Pages on a phone, in dark and light themes: they fit and are legible."""

from __future__ import annotations

import re

import pytest

from tests.console.conftest import OpenConsole
from tests.console.driver import Console, expect
from tests.console.flows import create
from tests.edge.api import Api
from tests.edge.live import LiveServer

PAGES = {
    "overview": "/console",
    "queues": "/console/queues",
    "queue": "/console/queues/{queue}",
    "settings": "/console/queues/{queue}/settings",
    "messages": "/console/messages?queue={queue}",
    "history": "/console/history?queue={queue}",
    "flows": "/console/flows",
    "flow": "/console/flows/{flow}",
    "members": "/console/flows/{flow}/members",
    "workers": "/console/workers",
    "circuits": "/console/circuits",
    "recurring": "/console/recurring",
    "scaling": "/console/scaling",
    "insights": "/console/insights",
    "sql": "/console/sql",
    "keys": "/console/keys",
    "server settings": "/console/settings",
    "aweq": "/console/aweq/send-message",
    "login": "/console/login",
    "nowhere": "/console/no/such/page",
}
# Luminance and contrast as defined by WCAG 2.
CONTRAST = """
() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (color) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((v) => v / 255).map((v) =>
      v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const ground = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const color = rgba(getComputedStyle(one).backgroundColor);
      if (color[3] > 0.85) return color;
    }
    return rgba("white");
  };
  const found = [];
  for (const element of document.querySelectorAll("body *")) {
    const text = [...element.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    const style = getComputedStyle(element);
    if (!text || !element.checkVisibility({ visibilityProperty: true, opacityProperty: true }))
      continue;
    if (element.closest("svg, :disabled, .unseen, .skip, .none")) continue;
    const [a, b] = [light(rgba(style.color)), light(ground(element))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) found.push(`${ratio.toFixed(2)} ${element.className} ${element.textContent}`);
  }
  return found;
}
"""


@pytest.fixture
def filled(api: Api) -> dict[str, str]:
    name = api.make_queue("a-queue-with-quite-a-long-name.that.goes.on", labels={"team": "x" * 60})
    api.send(name)
    api.die(name)
    flow = create(api, name, [{"name": "first"}, {"name": "m" * 60, "after": ["first"]}])
    api.call("POST", f"/v1/queues/{name}/pause")
    return {"queue": name, "flow": flow["flow"]["id"]}


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (360, "light"), (1280, "dark")])
def test_a_page_fits_the_screen_and_is_legible(
    server: LiveServer,
    open_console: OpenConsole,
    filled: dict[str, str],
    page: str,
    width: int,
    scheme: str,
) -> None:
    console = open_console(server.url, width=width, scheme=scheme)
    console.open(PAGES[page].format(**filled))
    console.page.wait_for_load_state("load")

    console.shoot(f"{page}-{width}-{scheme}")

    assert not console.is_too_wide()
    assert console.page.evaluate(CONTRAST) == []


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
    page.get_by_role("link", name="Queue Status").click()

    expect(console.heading).to_have_text("Queue Status")
    expect(page.get_by_role("navigation", name="Pages")).to_be_hidden()


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_landmarks_one_heading_and_labelled_controls(
    console: Console, filled: dict[str, str], page: str
) -> None:
    console.open(PAGES[page].format(**filled))

    assert console.heading.count() == 1
    assert console.page.get_by_role("main").count() == 1
    nameless = console.page.evaluate(
        """() => [...document.querySelectorAll("button, a[href], input, select, textarea")]
            .filter((one) => !(one.textContent.trim() || one.ariaLabel || one.labels?.length))
            .map((one) => one.outerHTML)"""
    )
    assert nameless == []
    assert console.page.evaluate("document.documentElement.lang") == "en"


def test_an_unknown_page_is_reported_as_not_found(console: Console) -> None:
    console.open("/console/no/such/page")

    expect(console.heading).to_have_text("Not found")
