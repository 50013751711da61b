"""Insights: the pipeline's tables and plots, and what to do while there are none."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.domain.circuit.circuit import circuit_hash
from tests.console.conftest import OpenConsole
from tests.console.driver import Console, Dialog, expect
from tests.console.shell import run_call, run_command
from tests.edge.api import Api, ok
from tests.edge.live import LiveServer
from tests.edge.pipeline_tables import write_day

HOSTILE = "<img src=x onerror=\"document.title='owned'\">"


@pytest.fixture
def gold(server: LiveServer) -> Iterator[Path]:
    found = Path(server.broker.settings.insights_folder)
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


def test_without_tables_the_page_explains_how_to_get_them(console: Console, gold: Path) -> None:
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
    console.page.get_by_label("One line per").select_option("queue")
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
def test_a_server_without_pyarrow_reports_it(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.outbound.table_files.find_spec", lambda name: None)

    console.open("/console/insights/slo")

    expect(console.page.locator(".notice")).to_contain_text("install pyarrow")


@pytest.fixture
def tuning(gold: Path, api: Api) -> Iterator[None]:
    """Recommendations for all routes and for one of jobs, on two days; the newer day counts."""
    for day, threshold in (("2031-01-01", 90), ("2031-01-02", 70)):
        rows = [
            {
                "route": route,
                "candidate": f"{threshold}%",
                "entries_max_age_ms": 300_000,
                "max_queue_sample_count": 4_000,
                "error_threshold_percentage": threshold + better,
                "min_queue_sample_count": 100,
                "is_recommended": better == 0,
            }
            for route in ("*", "stripe")
            for better in (0, 5)
        ]
        write_day(gold, "breaker_tuning", day, rows)
    yield
    ok(api.call("DELETE", "/v1/breaker"))
    for one in api.get("/v1/circuits/settings")["circuits"]:
        ok(api.call("DELETE", f"/v1/circuits/{one['circuit']}/settings"))


@pytest.mark.usefixtures("tuning")
def test_recommended_breaker_settings_are_applied(console: Console, api: Api) -> None:
    advice = {
        "entries_max_age_ms": 300_000,
        "max_queue_sample_count": 4_000,
        "error_threshold_percentage": 70,
        "min_queue_sample_count": 100,
    }
    path = f"/v1/circuits/{circuit_hash('stripe')}/settings"

    def apply(route: str) -> Dialog:
        console.row(f"advice {route}").get_by_role("button", name="Apply").click()
        return console.dialog

    console.open("/console/insights/breaker_tuning")
    expect(console.cell("advice stripe", "Recommended")).to_contain_text("percentage: 70")
    expect(console.cell("advice stripe", "In force")).to_contain_text("percentage: 90")
    dialog = apply("stripe")
    run_command(dialog.command())
    assert api.get(path)["overrides"] == advice
    ok(api.call("DELETE", path))
    run_call(dialog.call())
    assert api.get(path)["overrides"] == advice
    dialog.confirm()
    console.expect_toast("The recommended settings are in force.")
    assert api.get(path)["overrides"] == advice
    expect(console.row("advice stripe").get_by_role("button", name="Apply")).to_be_disabled()

    apply("*").confirm()
    expect(console.row("advice *").get_by_role("button", name="Apply")).to_be_disabled()
    assert api.get("/v1/breaker")["error_threshold_percentage"] == 70


@pytest.mark.usefixtures("slo")
def test_hostile_values_are_shown_as_text_and_fit_a_phone(
    open_console: OpenConsole, server: LiveServer
) -> None:
    phone = open_console(server.url, width=360, scheme="dark")

    phone.open("/console/insights/slo?y=bad&by=queue")

    expect(phone.page.locator("main")).to_contain_text(HOSTILE)
    assert phone.page.locator("main img").count() == 0
    assert not phone.is_too_wide()
