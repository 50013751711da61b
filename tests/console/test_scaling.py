"""Scaling: fleets, how many workers they want and why, and the log of decisions."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from penstock.domain.scaling.fleet_status import DECISION, FleetStatus, FleetTrouble, NewFact
from penstock.domain.scaling.recommendation import Sample, combine
from tests.clocks import ManualClock
from tests.console.conftest import OpenConsole, run_in_thread
from tests.console.driver import Console, expect
from tests.edge.api import a_name
from tests.edge.live import LiveServer
from tests.factories import a_fleet_status

HOSTILE = "<img src=x onerror=\"document.title='owned'\">"


def keep(server: LiveServer, *statuses: FleetStatus, facts: tuple[NewFact, ...] = ()) -> None:
    scaling = server.broker.scaling
    run_in_thread(lambda: scaling.save_tick(statuses, facts, now=server.clock.now()).result())


@pytest.fixture(autouse=True)
def _no_fleets_left(server: LiveServer) -> Iterator[None]:
    yield

    def forget() -> None:
        names = [status.name for status in server.broker.scaling.all().result()]
        server.broker.scaling.save_tick([], gone=names, now=server.clock.now()).result()

    run_in_thread(forget)


def test_without_fleets_the_page_explains_how_to_declare_them(console: Console) -> None:
    console.open("/console/scaling")

    expect(console.page.locator("main")).to_contain_text("There are no fleets")
    expect(console.page.locator("main")).to_contain_text("penstock autoscale --fleets fleets.toml")
    console.shoot("no-fleets")


def test_fleets_show_the_wanted_number_of_workers_and_the_reason(
    console: Console, server: LiveServer, clock: ManualClock
) -> None:
    decision = {"change": 5, "wanted": 6, "reason": "backlog", "level": 0, "backlog": 100}
    keep(
        server,
        a_fleet_status("mail", seen_at=clock.now()),
        facts=(NewFact(DECISION, "mail", decision),),
    )

    console.open("/console/scaling")
    expect(console.cell("mail", "Running")).to_have_text("1")
    expect(console.cell("mail", "Wanted")).to_have_text("6")
    expect(console.cell("mail", "Why")).to_have_text("backlog")
    console.shoot("scaling")

    console.row("mail").get_by_role("link").first.click()
    expect(console.heading).to_contain_text("watched")
    log = console.page.locator("tr[data-key]")
    expect(log).to_have_count(1)
    expect(log.locator('[data-label="Change"]')).to_have_text("+5")
    cell = log.locator('[data-label="Decision"]')
    expect(cell).to_contain_text("5 more, 6 in all: the backlog needs more workers (backlog 100)")
    expect(cell.locator("span")).to_have_attribute("title", re.compile("backlog 100"))
    console.shoot("fleet")


def test_a_fleet_with_several_queues_shows_each_of_them(
    console: Console, server: LiveServer, clock: ManualClock
) -> None:
    sample = combine({"mail": Sample(ready=3, oldest_ms=90_000), "post": Sample(ready=4, leased=2)})
    trouble = FleetTrouble("replicas", "replicas_unavailable", "crash loop", clock.now())
    keep(
        server,
        a_fleet_status(
            "both",
            queue="mail",
            queues=("mail", "post"),
            sample=sample,
            troubles=(trouble,),
            seen_at=clock.now(),
        ),
    )

    console.open("/console/scaling")
    expect(console.cell("both", "Queue")).to_have_text("mail, post")
    expect(console.cell("both", "Backlog")).to_have_text("7")
    expect(console.cell("both", "Oldest")).to_contain_text("1")
    expect(console.cell("both", "Trouble")).to_have_text("replicas unavailable")

    console.row("both").get_by_role("link").first.click()
    expect(console.page.locator("main")).to_contain_text("3 ready, 0 leased, oldest 1")
    expect(console.page.locator("main")).to_contain_text("4 ready, 2 leased, oldest –")


def test_problems_and_a_missing_autoscaler_are_reported(
    open_console: OpenConsole, server: LiveServer, clock: ManualClock
) -> None:
    trouble = FleetTrouble("source", "source_unavailable", HOSTILE, clock.now())
    keep(server, a_fleet_status("mail", seen_at=clock.now(), troubles=(trouble,)))
    clock.advance(hours=1)
    phone = open_console(server.url, width=360, scheme="dark")

    phone.open("/console/scaling/mail")

    expect(phone.page.locator(".notice.warn")).to_contain_text("No autoscaler is watching")
    expect(phone.page.locator(".notice.bad")).to_contain_text(HOSTILE)
    assert phone.page.locator("main img").count() == 0
    assert not phone.is_too_wide()


def test_decisions_are_drawn_and_said_in_sentences(
    console: Console, server: LiveServer, clock: ManualClock
) -> None:
    name = a_name("fleet")
    for change, wanted, reason, recommended in (
        (2, 3, "backlog", 2),
        (0, 3, "cooling_down", -1),
        (-1, 2, "less_needed", -1),
    ):
        clock.advance(minutes=1)
        inputs = {"running": 1, "ready": 90, "publish_rate": 2.5, "consume_rate": 2.0}
        decision = {
            "change": change,
            "wanted": wanted,
            "reason": reason,
            "recommended": recommended,
            "inputs": inputs,
        }
        status = a_fleet_status(name, seen_at=clock.now())
        facts = [NewFact(DECISION, name, decision)]
        saved = server.broker.scaling.save_tick([status], facts, now=clock.now())
        run_in_thread(saved.result)

    console.open(f"/console/scaling/{name}")

    texts = console.page.locator('[data-label="Decision"]').all_inner_texts()
    assert texts == [
        "1 fewer, 2 in all: fewer would do (1 running, ready 90, in 2.5/s, out 2/s)",
        "3 stay: 1 fewer would do, the last change was too recent "
        "(1 running, ready 90, in 2.5/s, out 2/s)",
        "2 more, 3 in all: the backlog needs more workers (1 running, ready 90, in 2.5/s, out 2/s)",
    ]
    for title, lines in (("Workers", 2), ("Backlog", 1)):
        drawn = console.page.locator(f'[data-chart="{title}"] path.line')
        expect(drawn).to_have_count(lines)
