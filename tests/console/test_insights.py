"""Insights: answers and advice, the pipeline's tables, and what to do while there are none."""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator

from penstock.domain.circuit.circuit import circuit_hash
from penstock.domain.scaling.recommendation import Profile
from tests.console.conftest import OpenConsole, run_in_thread
from tests.console.driver import Console, expect
from tests.console.shell import run_call, run_command
from tests.console.story_tables import write_answers
from tests.domain.insights.rows import cost, kind
from tests.edge.api import Api, ok
from tests.edge.live import LiveServer
from tests.edge.pipeline_tables import without_day, write_backtest, write_day, write_tuning
from tests.factories import a_fleet_status

TABLES = Path(__file__).parents[2] / "docs" / "tables.json"  # as the pipeline's jobs write them
WITHOUT_PLOT = {"known_workers", "lifecycle", "quarantine"}
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
            {
                "queue": queue,
                "objective": "wait",
                "bad": day * factor,
                "burn": day * factor / 10,
                "worst_hour_at": 1,
            }
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

    expect(console.heading).to_have_text("Service levels")
    expect(console.page.locator("tr[data-key]")).to_have_count(15)
    chosen = console.page.locator('[data-chart^="Burn of the error budget"] .legend button')
    expect(chosen.first).to_have_text("mail · wait")
    expect(chosen).to_have_count(3)
    expect(console.cell("line 0", "queue").get_by_role("link")).to_be_visible()
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

    expect(console.page.locator(".notice")).to_contain_text("penstock-queue[archive]")


@pytest.fixture
def tuning(gold: Path, api: Api) -> Iterator[None]:
    """Advice for all routes and for one of jobs."""
    write_tuning(gold, "2031-01-02", "*", "stripe")
    yield
    ok(api.call("DELETE", "/v1/breaker"))
    for one in api.get("/v1/circuits/settings")["circuits"]:
        ok(api.call("DELETE", f"/v1/circuits/{one['circuit']}/settings"))


@pytest.mark.usefixtures("slo")
def test_every_question_is_answered_in_words_and_with_a_chart(console: Console, gold: Path) -> None:
    write_day(
        gold, "outage_cost", "2031-01-02", [without_day(cost("orders", tenant=HOSTILE, late=7))]
    )
    kinds = [kind(f"2031-01-0{day}", failing_ratio=day / 10) for day in (1, 2)]
    for one in kinds:
        write_day(gold, "poison_kinds", one["dt"], [without_day(one)])
    (gold / "poison_releases").mkdir()

    console.open("/console/insights")

    expect(console.page.locator("[data-answer]")).to_have_count(6)
    outage = console.page.locator('[data-answer="outage"]')
    expect(outage).to_contain_text("7 messages were late")
    expect(outage).to_contain_text(f"By tenant: {HOSTILE} (7 late).")
    assert console.page.locator("main img").count() == 0
    bars = console.page.locator('[data-chart="Messages that outages cost"]')
    expect(bars.locator(".bar-group")).to_have_count(1)
    expect(bars.locator("dd").first).to_contain_text("7")
    lines = console.page.locator('[data-chart="Failing messages"]')
    expect(lines.locator("path.line")).to_have_count(1)
    expect(console.page.locator('[data-answer="starvation"]')).to_contain_text("Not computed yet")
    expect(console.cell("slo", "Days")).to_have_text("5")
    console.shoot("answers")

    console.page.get_by_role("link", name="What did the outage cost?").click()
    expect(console.heading).to_have_text("What did the outage cost?")
    console.page.get_by_role("link", name="outage_cost").click()
    expect(console.heading).to_have_text("What outages cost")
    expect(console.page.locator('[data-chart="Late messages"] .bar-group')).to_have_count(1)


def test_every_table_of_the_pipeline_has_a_page_of_sane_size_with_its_plot(
    console: Console, gold: Path
) -> None:
    contract = json.loads(TABLES.read_text())["computed"]
    for day in range(1, 8):
        for table in contract:
            rows = [a_row(table["columns"], number, day) for number in range(10)]
            write_day(gold, table["name"], f"2031-01-0{day}", rows)

    for table in contract:
        page = console.open(f"/console/insights/{table['name']}")
        assert console.heading.inner_text() != table["name"], "it has a title in words"
        assert page.locator("main [data-chart]").count() == (table["name"] not in WITHOUT_PLOT)
        if table["name"] not in WITHOUT_PLOT:
            expect(page.locator(".line, .bar-line").first).to_be_attached()
        assert page.evaluate("document.documentElement.scrollHeight") < 4_000, table["name"]
        assert not console.is_too_wide(), table["name"]
        assert "null" not in page.locator("main").inner_text()
        # A date is on one line, whatever the width of the table.
        narrow = "td => td.getBoundingClientRect().height > 60"
        assert not page.locator("tr[data-key] td, tr[data-key] th").first.evaluate(narrow)


def a_row(columns: list[dict[str, Any]], number: int, day: int) -> dict[str, Any]:
    """Values of each type, with names as long as those of real tables."""
    texts = {"grain": "hour", "dimension": "queue", "id": str(uuid.UUID(int=number))}
    values: dict[str, Any] = {}
    for column in columns:
        name, kind = column["name"], column["type"]
        if kind.startswith("map"):
            continue
        if kind == "boolean":
            values[name] = number % 2 == 0 and name != "is_passed"
        elif kind == "double":
            values[name] = (number + day) / 7
        elif kind.startswith("int"):
            is_instant = name == "at" or name.endswith("_at")
            values[name] = 1_925_000_000_000 + day * 86_400_000 if is_instant else number + day
        else:
            values[name] = texts.get(name, f"{name}-{number}.with-a-rather-long-name")
    return values


def advice(console: Console, target: str) -> Locator:
    """The button that applies the advice."""
    return console.page.locator(f'[data-advice="{target}"]').get_by_role("button", name="Apply")


@pytest.mark.usefixtures("tuning")
def test_advice_on_the_breaker_is_shown_with_its_back_test_and_applied(
    console: Console, api: Api
) -> None:
    path = f"/v1/circuits/{circuit_hash('stripe')}/settings"
    console.open("/console/insights")
    console.page.get_by_role("link", name="See the back-tests and apply the advice (2)").click()
    threshold = console.page.locator('[data-advice="stripe"] tr', has_text="threshold percentage")
    expect(threshold.locator("td")).to_have_text(["90", "70"])

    advice(console, "stripe").click()

    dialog = console.dialog
    expect(dialog.box).to_contain_text("On 1 recorded day")
    expect(dialog.box.locator(".backtest tr", has_text="calls that fail")).to_contain_text("900")
    console.shoot("apply-advice")
    run_command(dialog.command())
    assert api.get(path)["overrides"]["error_threshold_percentage"] == 70
    ok(api.call("DELETE", path))
    run_call(dialog.call())
    assert api.get(path)["overrides"]["error_threshold_percentage"] == 70
    ok(api.call("DELETE", path))
    dialog.confirm()
    console.expect_toast("The recommended settings are in force.")
    assert api.get(path)["overrides"]["error_threshold_percentage"] == 70
    expect(advice(console, "stripe")).to_be_disabled()

    advice(console, "*").click()
    console.dialog.confirm()
    expect(advice(console, "*")).to_be_disabled()
    assert api.get("/v1/breaker")["error_threshold_percentage"] == 70


@pytest.mark.usefixtures("tuning")
def test_advice_is_not_applied_if_the_settings_have_changed_meanwhile(
    console: Console, api: Api
) -> None:
    console.open("/console/insights/answers/breaker")
    advice(console, "*").click()
    ok(api.call("PATCH", "/v1/breaker", {"error_threshold_percentage": 10}))

    console.dialog.try_to_confirm()

    console.dialog.expect_problem("have changed since")
    assert api.get("/v1/breaker")["error_threshold_percentage"] == 10
    console.forgive("409")


def test_advice_on_a_fleet_is_applied_and_can_be_reset(
    console: Console, gold: Path, server: LiveServer
) -> None:
    write_backtest(gold, "2031-01-02")
    status = a_fleet_status("mail", seen_at=server.clock.now(), file_profile=Profile())
    scaling, now = server.broker.scaling, server.clock.now()
    run_in_thread(lambda: scaling.save_tick([status], now=now).result())
    console.open("/console/insights/answers/fleet")
    expect(console.page.locator("[data-answer]")).to_contain_text("4 worker hours instead of 10")

    advice(console, "mail").click()
    console.dialog.confirm()

    console.expect_toast("The recommended settings are in force.")
    console.open("/console/scaling/mail")
    profile = console.page.locator(".card", has=console.page.get_by_role("heading", name="Profile"))
    expect(profile.locator("dd", has_text="override").first).to_contain_text("3")
    console.ask("Reset profile").confirm()
    console.expect_toast("Overrides removed.")
    expect(profile.locator("dd", has_text="override")).to_have_count(0)
    run_in_thread(lambda: scaling.save_tick([], gone=["mail"], now=now).result())


@pytest.mark.usefixtures("tuning")
def test_answers_and_advice_fit_a_phone(open_console: OpenConsole, server: LiveServer) -> None:
    write_answers(Path(server.broker.settings.insights_folder))
    phone = open_console(server.url, width=360, scheme="dark")

    for path in ("/console/insights", "/console/insights/answers/breaker"):
        phone.open(path)
        expect(phone.page.locator("[data-answer]").first).to_be_visible()
        assert not phone.is_too_wide()
    advice(phone, "*").click()
    expect(phone.dialog.box.locator(".backtest")).to_be_visible()
    assert not phone.is_too_wide()
    phone.shoot("advice-phone")


@pytest.mark.usefixtures("slo")
def test_hostile_values_are_shown_as_text_and_fit_a_phone(
    open_console: OpenConsole, server: LiveServer
) -> None:
    phone = open_console(server.url, width=360, scheme="dark")

    phone.open("/console/insights/slo?y=bad&by=queue")

    expect(phone.page.locator("main")).to_contain_text(HOSTILE)
    assert phone.page.locator("main img").count() == 0
    assert not phone.is_too_wide()
