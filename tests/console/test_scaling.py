"""Scaling: fleets, how many workers they want and why, and the log of decisions."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.domain.scaling.fleet_status import DECISION, FleetStatus, FleetTrouble, NewFact
from penstock.domain.scaling.recommendation import Sample, combine
from tests.clocks import ManualClock
from tests.console.conftest import OpenConsole, run_in_thread
from tests.console.driver import Console, expect
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
    expect(log.locator('[data-label="Why"]')).to_have_text("backlog")
    expect(log.locator('[data-label="Inputs"]')).to_contain_text("backlog 100")
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
