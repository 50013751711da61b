"""Recurring work: its next runs, its last one, running it now, pausing it."""

from __future__ import annotations

from typing import Any

from penstock.domain.access.api_key import Role
from tests.console.conftest import NewKey, OpenConsole
from tests.console.driver import Console, expect
from tests.console.login import log_in
from tests.console.shell import run_call, run_command
from tests.edge.api import Api, a_name, ok
from tests.edge.live import LiveServer

HOSTILE = "<img src=x onerror=\"document.title='owned'\">"


def recur(api: Api, queue: str, **more: Any) -> str:
    name = a_name("nightly")
    wanted = {"queue": queue, "cron": "30 2 * * *", "zone": "Europe/Berlin", **more}
    ok(api.call("PUT", f"/v1/recurring/{name}", wanted))
    return name


def test_recurring_work_is_listed_with_its_next_run(console: Console, api: Api) -> None:
    queue = api.make_queue()
    name = recur(api, queue)

    console.open("/console/recurring")

    expect(console.cell(name, "Rhythm")).to_have_text("At 02:30 every day Europe/Berlin 30 2 * * *")
    expect(console.cell(name, "Queue")).to_have_text(queue)
    expect(console.cell(name, "Next run")).to_contain_text("in ")
    console.shoot("recurring")
    console.row(name).get_by_role("link").first.click()
    expect(console.page.locator(".next-runs li")).to_have_count(10)


def test_the_next_runs_come_from_the_server(console: Console, api: Api) -> None:
    name = recur(api, api.make_queue(), body={"report": "all"}, kind="report")
    console.open(f"/console/recurring/{name}")

    instants = api.get(f"/v1/recurring/{name}/preview", count=10)["instants"]
    shown = console.page.locator(".next-runs time").all()

    assert [run.get_attribute("datetime") for run in shown] == instants
    expect(console.page.locator('[data-form="Body"]')).to_contain_text('"report": "all"')
    console.shoot("schedule")


def test_it_is_run_now_by_button_command_and_call(console: Console, api: Api) -> None:
    queue = api.make_queue()
    name = recur(api, queue)

    console.open(f"/console/recurring/{name}")
    console.ask("Run now").confirm()
    console.expect_toast("Sent:")
    assert api.counts(queue) == {"ready": 1}
    expect(console.page.locator("main")).to_contain_text("Next runs")
    run_command(console.ask("Run now").command())
    console.dialog.cancel()
    run_call(console.ask("Run now").call())
    assert api.counts(queue) == {"ready": 3}


def test_it_is_paused_and_resumed(console: Console, api: Api) -> None:
    name = recur(api, api.make_queue())

    console.open(f"/console/recurring/{name}")
    console.ask("Pause").confirm()
    expect(console.heading.locator(".badge")).to_have_text("paused")
    assert api.get(f"/v1/recurring/{name}")["is_paused"] is True
    dialog = console.ask("Resume")
    run_command(dialog.command())
    assert api.get(f"/v1/recurring/{name}")["is_paused"] is False
    dialog.confirm()
    expect(console.page.locator('button[data-action="Pause"]')).to_be_visible()
    run_call(console.ask("Pause").call())
    assert api.get(f"/v1/recurring/{name}")["is_paused"] is True


def test_hostile_recurring_work_is_shown_as_text_and_fits_a_phone(
    open_console: OpenConsole, server: LiveServer, api: Api
) -> None:
    name = recur(api, api.make_queue(), body=HOSTILE, kind=HOSTILE, attributes={HOSTILE: HOSTILE})
    phone = open_console(server.url, width=360, scheme="dark")

    for path in ("/console/recurring", f"/console/recurring/{name}"):
        phone.open(path)
        assert phone.page.locator("main img").count() == 0
        assert not phone.is_too_wide(), path
    expect(phone.page.locator("main")).to_contain_text(HOSTILE)


def test_a_reader_cannot_run_it(
    server_with_keys: LiveServer, open_console: OpenConsole, new_key: NewKey
) -> None:
    api = Api(server_with_keys.url, key=new_key())
    name = recur(api, api.make_queue())
    reader = log_in(open_console, server_with_keys.url, new_key(Role.READ))

    reader.open(f"/console/recurring/{name}")

    for label in ("Run now", "Pause"):
        expect(reader.page.locator(f'button[data-action="{label}"]')).to_be_disabled()


def test_it_is_created_edited_and_removed_and_shows_its_last_runs(
    console: Console, api: Api, name: str
) -> None:
    schedule = a_name("made")
    console.open("/console/recurring")
    dialog = console.ask("New").fill("Name", schedule).fill("Queue", name)
    dialog.fill("Cron", "0 9 * * 1-5").fill("Time zone of the cron expression", "Asia/Tokyo")
    dialog.fill("Kind", "report").fill("Body (JSON)", '{"all": true}').confirm()
    expect(console.heading).to_contain_text(schedule)
    expect(console.page.locator("main")).to_contain_text("At 09:00 on Monday through Friday")
    first = console.page.locator(".next-runs li").first
    expect(first).to_contain_text("09:00:00 Asia/Tokyo")
    expect(first).to_contain_text("00:00:00 here")
    made = api.get(f"/v1/recurring/{schedule}")
    assert (made["zone"], made["kind"], made["body"]) == ("Asia/Tokyo", "report", {"all": True})

    console.ask("Run now").confirm()
    console.expect_toast("Sent:")
    ok(api.act(api.claim_one(name)["receipt"], "bury", reason="no printer"))
    dialog = console.ask("Edit").fill("Cron", "").fill("Or every", "5m").fill("Kind", "report")
    dialog.confirm()
    console.expect_toast("is saved")
    expect(console.page.locator("main")).to_contain_text("every 5m")
    changed = api.get(f"/v1/recurring/{schedule}")
    assert (changed["every_ms"], changed.get("cron")) == (300_000, None)
    expect(console.page.locator('[data-label="Outcome"]')).to_have_text("dead")
    expect(console.page.locator('[data-label="Error"]')).to_have_text("no printer")
    console.shoot("recurring-runs")

    console.ask("Remove").confirm()
    expect(console.heading).to_have_text("Recurring")
    expect(console.row(schedule)).to_have_count(0)
