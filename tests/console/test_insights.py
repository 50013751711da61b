"""Insights: the pipeline's tables and plots, and what to do while there are none."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.console.conftest import OpenConsole
from tests.console.driving import Console, expect
from tests.edge.gold import write_day
from tests.edge.live import LiveServer

HOSTILE = "<img src=x onerror=\"document.title='owned'\">"


@pytest.fixture
def gold(server: LiveServer) -> Iterator[Path]:
    found = server.broker.settings.insights_folder
    yield found
    shutil.rmtree(found, ignore_errors=True)


@pytest.fixture
def slo(gold: Path) -> None:
    for day in range(1, 6):
        rows = [
            {"queue": queue, "objective": "wait", "bad": day * factor, "worst_hour_at": 1}
            for queue, factor in (("mail", 10), ("shop", 3), (HOSTILE, 1))
        ]
        write_day(gold, "slo", f"2031-01-0{day}", rows)


def test_without_tables_the_page_says_what_to_do(console: Console, gold: Path) -> None:
    console.open("/console/insights")

    expect(console.page.locator("main")).to_contain_text("There are no tables yet")
    expect(console.page.locator("main")).to_contain_text("penstock pipeline run")
    expect(console.page.locator("main")).to_contain_text(str(gold))
    console.shoot("no-insights")


@pytest.mark.usefixtures("slo")
def test_a_table_is_shown_and_plotted(console: Console) -> None:
    console.open("/console/insights")
    expect(console.cell("slo", "Days")).to_have_text("5")
    console.row("slo").get_by_role("link").first.click()

    expect(console.heading).to_have_text("slo")
    expect(console.page.locator("tr[data-key]")).to_have_count(15)
    console.page.get_by_label("Plot").select_option("bad")
    console.page.get_by_label("One line for each").select_option("queue")
    console.page.get_by_role("button", name="Show").click()
    legend = console.page.locator('[data-chart="bad"] .legend button')
    expect(legend).to_have_count(3)
    expect(legend.first).to_have_text("mail")
    assert "y=bad" in console.path
    console.shoot("insight")

    console.page.get_by_label("From day").fill("2031-01-04")
    console.page.get_by_role("button", name="Show").click()
    expect(console.page.locator("tr[data-key]")).to_have_count(6)


@pytest.mark.usefixtures("slo")
def test_a_server_without_pyarrow_says_so(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.outbound.gold_files.find_spec", lambda name: None)

    console.open("/console/insights/slo")

    expect(console.page.locator(".notice")).to_contain_text("install pyarrow")


@pytest.mark.usefixtures("slo")
def test_hostile_values_are_only_text_and_fit_a_phone(
    open_console: OpenConsole, server: LiveServer
) -> None:
    phone = open_console(server.url, width=360, scheme="dark")

    phone.open("/console/insights/slo?y=bad&by=queue")

    expect(phone.page.locator("main")).to_contain_text(HOSTILE)
    assert phone.page.locator("main img").count() == 0
    assert not phone.is_too_wide()
