"""SQL: a statement and its result, errors, and the tables that can be read."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.console.conftest import OpenConsole
from tests.console.driver import Console, expect
from tests.console.shell import run_call
from tests.edge.live import LiveServer
from tests.edge.pipeline_tables import write_day, write_lake

HOSTILE = "<img src=x onerror=\"document.title='owned'\">"


@pytest.fixture(autouse=True)
def lake(server: LiveServer) -> Iterator[Path]:
    found = Path(server.broker.settings.lake_folder)
    write_lake(found, "2031-01-01", [{"queue": "mail"}, {"queue": HOSTILE}, {"queue": "mail"}])
    write_day(Path(server.broker.settings.insights_folder), "slo", "2031-01-01", [{"bad": 1}])
    yield found
    shutil.rmtree(found, ignore_errors=True)


def test_a_statement_is_run_and_its_address_can_be_shared(console: Console) -> None:
    console.open("/console/sql")
    expect(console.page.locator('[data-table="slo"]')).to_be_visible()
    console.page.locator('[data-table="slo"]').click()
    expect(console.page.locator('[data-table="slo"]')).to_contain_text("bad bigint, dt varchar")
    statement = console.page.get_by_label("Statement")
    statement.fill("SELECT queue, count(*) AS n FROM history GROUP BY 1 ORDER BY n DESC, 1")
    statement.press("Control+Enter")

    expect(console.cell("result 0", "queue")).to_have_text("mail")
    expect(console.cell("result 0", "n")).to_have_text("2")
    expect(console.cell("result 1", "queue")).to_have_text(HOSTILE)
    console.shoot("sql")
    console.page.reload()
    expect(console.cell("result 0", "n")).to_have_text("2")
    expect(statement).to_have_value(
        "SELECT queue, count(*) AS n FROM history GROUP BY 1 ORDER BY n DESC, 1"
    )
    console.page.get_by_text("Do the same from a shell").click()
    shown = console.page.locator('[data-form="HTTP API"] code').inner_text()
    assert run_call(shown)["rows"][0] == ["mail", 2]


def test_an_error_is_shown_with_its_code(console: Console) -> None:
    console.open("/console/sql?q=DROP+VIEW+history")

    expect(console.page.locator(".notice.bad")).to_contain_text("only SELECT is allowed")
    expect(console.page.locator(".notice.bad code")).to_have_text("sql_failed")
    console.forgive("400")


def test_a_server_without_duckdb_reports_it(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.outbound.lake_sql.runner.find_spec", lambda name: None)

    console.open("/console/sql")

    expect(console.page.locator(".notice.warn")).to_contain_text("penstock-queue[sql]")
    console.forgive("400")


def test_a_wide_result_fits_a_phone(open_console: OpenConsole, server: LiveServer) -> None:
    phone = open_console(server.url, width=360, scheme="dark")

    phone.open("/console/sql?q=FROM+history")

    expect(phone.cell("result 0", "finished_at")).to_have_text("0")
    assert not phone.is_too_wide()
