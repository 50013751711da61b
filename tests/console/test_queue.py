"""The page of one queue: its figures and graphs."""

from __future__ import annotations

import re

from tests.clocks import ManualClock
from tests.console.conftest import run_in_thread
from tests.console.driver import Console, expect
from tests.edge.api import Api
from tests.edge.duties import sample
from tests.edge.live import LiveServer

A_LINE = re.compile(r"^M[\d.]+ [\d.]+L")
HOSTILE = "<img src=x onerror=\"document.title='caught'\">"


def test_a_queue_shows_its_counts_and_the_age_of_its_first_message(
    console: Console, api: Api, name: str, clock: ManualClock
) -> None:
    api.die(name)
    api.send(name)
    api.send(name, delay_ms=3_600_000)
    clock.advance(minutes=4)

    console.open_queue(name)

    for label, value in (("Ready", "1"), ("Waiting", "1"), ("Leased", "0"), ("Dead", "1")):
        expect(console.figure(label)).to_have_text(value)
    expect(console.figure("Oldest")).to_have_text("4m")
    expect(console.page.locator(".facts").first).to_contain_text("Sent3")
    console.shoot("queue")


def test_figures_follow_changes(console: Console, api: Api, name: str) -> None:
    console.open_queue(name)
    expect(console.page.locator(".live")).to_have_attribute("data-state", "live")

    api.send(name)
    expect(console.figure("Ready")).to_have_text("1")
    api.claim_one(name)
    expect(console.figure("Leased")).to_have_text("1")
    expect(console.figure("Ready")).to_have_text("0")


def test_graphs_are_drawn_from_the_recorded_samples(
    console: Console, api: Api, server: LiveServer, clock: ManualClock, name: str
) -> None:
    clock.advance(hours=2)
    for sends in (0, 3, 5):
        for _ in range(sends):
            api.send(name)
        clock.advance(minutes=1)
        run_in_thread(lambda: sample(server))
    console.open_queue(name)

    chart = console.page.locator('[data-chart="Backlog"]')
    expect(chart.locator("path.line.tone-ready")).to_have_attribute("d", A_LINE)
    chart.locator("svg").focus()
    console.page.keyboard.press("ArrowLeft")
    expect(chart.locator(".readout")).to_contain_text("ready 8")
    console.page.keyboard.press("ArrowLeft")
    expect(chart.locator(".readout")).to_contain_text("ready 3")
    console.shoot("queue-graphs")

    chart.get_by_role("button", name="ready").click()
    expect(chart.locator("path.line.tone-ready")).to_have_count(0)
    console.page.get_by_role("link", name="7d", exact=True).click()
    expect(console.page.get_by_role("link", name="7d", exact=True)).to_have_attribute(
        "aria-current", "true"
    )
    assert console.path == f"/console/queues/{name}?range=7d"


def test_an_unknown_queue_is_reported_as_not_found(console: Console) -> None:
    console.open("/console/queues/no-such-queue")

    expect(console.heading).to_have_text("Not found")
    console.forgive("404 (Not Found)")


def test_labels_are_shown_and_never_executed(console: Console, api: Api) -> None:
    name = api.make_queue(labels={"team": HOSTILE, HOSTILE: "x"})

    console.open_queue(name)
    expect(console.page.locator(".page-head .badge").first).to_contain_text(HOSTILE)
    console.open(f"/console/queues/{name}/settings")

    assert HOSTILE in console.page.get_by_label("Labels").input_value()
    assert console.page.locator("main img").count() == 0
    assert console.page.title() != "caught"
