"""The overview: current figures, problems and graphs."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.domain.access.api_key import Role
from tests.clocks import ManualClock
from tests.console.conftest import NewKey, OpenConsole, run_in_thread
from tests.console.driver import Console, expect
from tests.edge.api import Api, ok
from tests.edge.duties import sample
from tests.edge.live import LiveServer

pytestmark = pytest.mark.both_stores


@pytest.fixture
def calm(api: Api) -> None:
    """Leftovers of other tests are not among the worst problems, even when time advances."""
    query: dict[str, Any] = {"limit": 1_000}
    while query:
        page = api.get("/v1/queues", **query)
        query = query | {"cursor": page["next"]} if page["next"] else {}
        for queue in page["queues"]:
            if any(queue["counts"][state] for state in ("ready", "waiting", "dead")):
                ok(api.call("POST", f"/v1/queues/{queue['name']}/purge"))


def test_figures_are_current(console: Console, api: Api) -> None:
    name = api.make_queue("over")
    console.open("/console")
    before = api.get("/v1/stats")["counts"]["ready"]
    expect(console.figure("Ready")).to_have_text(f"{before:,}")

    for _ in range(3):
        api.send(name)

    expect(console.figure("Ready")).to_have_text(f"{before + 3:,}")
    api.call("POST", "/v1/workers", {"name": "one"})
    workers = len(api.get("/v1/workers")["workers"])
    expect(console.figure("Workers")).to_have_text(str(workers))


@pytest.mark.usefixtures("calm")
def test_problems_come_first_and_link_to_their_queue(
    console: Console, api: Api, clock: ManualClock
) -> None:
    stuck, dead = api.make_queue("stuck"), api.make_queue("dead")
    for _ in range(50):
        api.send(stuck)
    for _ in range(40):
        api.die(dead)
    clock.advance(minutes=6)

    console.open("/console")

    expect(console.cell(stuck, "What")).to_have_text("stuck")
    expect(console.cell(stuck, "Oldest")).to_have_text("6 min")
    expect(console.cell(dead, "What")).to_have_text("dead messages")
    expect(console.cell(dead, "Dead")).to_have_text("40")
    assert console.keys().index(stuck) < console.keys().index(dead)
    console.shoot("overview")

    ok(api.call("POST", f"/v1/queues/{dead}/purge"))
    expect(console.row(dead)).to_have_count(0)
    console.row(stuck).get_by_role("link").click()
    expect(console.heading).to_have_text(stuck)


@pytest.mark.usefixtures("calm")
def test_full_paused_and_dead_letter_queues_are_reported(console: Console, api: Api) -> None:
    letters = api.make_queue("letters")
    full, paused = api.make_queue("full", max_messages=1), api.make_queue("paused")
    api.send(full)
    api.send(paused)
    api.call("POST", f"/v1/queues/{paused}/pause")
    api.die(api.make_queue(dead_letter_queue=letters))

    console.open("/console")

    for name, text in ((full, "full"), (paused, "paused"), (letters, "dead letters")):
        expect(console.cell(name, "What")).to_have_text(text)


def test_the_graphs_show_all_queues_in_the_range_of_the_url(
    console: Console, api: Api, server: LiveServer, clock: ManualClock
) -> None:
    for _ in range(3):
        clock.advance(minutes=1)
        api.finish(api.make_queue())
        run_in_thread(lambda: sample(server))

    page = console.open("/console?range=24h")

    current = page.get_by_role("navigation", name="Time").locator("[aria-current]")
    expect(current).to_have_text("24h")
    for title in ("Throughput", "Backlog", "Wait", "Work", "Failures"):
        expect(page.locator(f'[data-chart="{title}"] path.line').first).to_be_attached()
    expect(console.figure("Latency")).to_have_text("0 ms")
    page.get_by_role("link", name="6h", exact=True).click()
    expect(current).to_have_text("6h")
    assert console.path == "/console?range=6h"
    page.go_back()
    expect(current).to_have_text("24h")


def test_updates_resume_after_the_connection_was_lost(console: Console, api: Api) -> None:
    page = console.open("/console")
    live = page.locator(".live")
    expect(live).to_have_attribute("data-state", "live")
    expect(console.figure("Ready")).not_to_have_text("–")

    page.context.set_offline(True)
    page.evaluate("dispatchEvent(new Event('offline'))")
    page.context.set_offline(False)
    name = api.make_queue()
    before = int(console.figure("Ready").inner_text().replace(",", ""))
    api.send(name)

    expect(console.figure("Ready")).to_have_text(f"{before + 1:,}")
    expect(live).to_have_attribute("data-state", "live")
    console.overlook("ERR_")


def test_a_key_for_some_queues_sees_only_their_problems(
    server_with_keys: LiveServer, open_console: OpenConsole, new_key: NewKey
) -> None:
    operator = Api(server_with_keys.url, key=new_key())
    for name in ("mine-1", "other-1"):
        operator.call("PUT", f"/v1/queues/{name}")
        operator.die(name)
    console = open_console(server_with_keys.url)
    console.page.goto("/console")

    console.log_in(new_key(Role.READ, queues=("mine-*",)))

    expect(console.row("mine-1")).to_be_visible()
    assert console.keys() == ["mine-1"]
    expect(console.page.locator(".notice")).to_contain_text("limited to some queues")
    operator.close()
