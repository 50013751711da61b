"""Workers: state, leases, and draining."""

from __future__ import annotations

from typing import Any

from penstock.domain.access.api_key import Role
from tests.clocks import ManualClock
from tests.console.conftest import NewKey, OpenConsole
from tests.console.driver import Console, expect
from tests.console.login import log_in
from tests.console.shell import run_call, run_command
from tests.edge.api import Api, ok
from tests.edge.live import LiveServer

HOSTILE = "<img src=x onerror=\"document.title='owned'\">"


def register(api: Api, **about: Any) -> str:
    return str(ok(api.call("POST", "/v1/workers", about))["id"])


def test_workers_are_listed_with_their_slots_and_health(console: Console, api: Api) -> None:
    queue = api.make_queue()
    worker = register(api, name="mailer", host="h1", pid=7, queues=[queue], slots=4)
    api.send(queue)
    api.claim_one(queue, claimed_by=worker)

    console.open("/console/workers")

    expect(console.cell(worker, "Worker")).to_have_text("mailer")
    expect(console.cell(worker, "State")).to_have_text("active")
    expect(console.cell(worker, "Host")).to_have_text("h1 (7)")
    expect(console.cell(worker, "Slots")).to_contain_text("1 / 4")
    console.shoot("workers")


def test_one_worker_is_shown_with_its_current_work(console: Console, api: Api) -> None:
    queue = api.make_queue()
    worker = register(api, name="mailer", queues=[queue], kinds=["a"], labels={"zone": "eu"})
    message_id = api.send(queue, kind="a")
    api.claim_one(queue, claimed_by=worker)

    console.open(f"/console/workers/{worker}")

    expect(console.cell(message_id, "Queue")).to_have_text(queue)
    expect(console.page.locator(".facts")).to_contain_text("Label zoneeu")
    expect(console.page.locator('[data-step="worker_registered"]')).to_be_visible()
    console.row(message_id).get_by_role("link").first.click()
    console.page.get_by_role("link", name="a worker").click()
    expect(console.heading).to_contain_text("mailer")
    console.shoot("worker")


def test_a_worker_is_drained_by_button_command_and_call(console: Console, api: Api) -> None:
    by_button, by_command, by_call = (register(api, name=f"w{n}") for n in range(3))

    console.open(f"/console/workers/{by_button}")
    console.ask("Drain").confirm()
    console.expect_toast("The worker is draining.")
    expect(console.heading.locator(".badge")).to_have_text("draining")
    expect(console.page.locator('button[data-action="Drain"]')).to_be_disabled()
    console.open(f"/console/workers/{by_command}")
    run_command(console.ask("Drain").command())
    console.open(f"/console/workers/{by_call}")
    run_call(console.ask("Drain").call())

    for worker in (by_button, by_command, by_call):
        assert api.get(f"/v1/workers/{worker}")["state"] == "draining"


def test_a_worker_that_misses_two_beats_is_silent(
    console: Console, api: Api, clock: ManualClock
) -> None:
    worker = register(api, name="mailer", host="h1", pid=7)
    clock.advance(seconds=60)

    console.open("/console/workers")
    expect(console.cell(worker, "State")).to_have_text("silent")
    console.open(f"/console/workers/{worker}")

    expect(console.heading).to_have_text("mailer silent")
    expect(console.page.locator(".notice")).to_contain_text("Its last beat arrived")
    expect(console.page.locator(".lead")).to_contain_text("h1 (7)")


def test_ended_workers_are_shown_on_request(console: Console, api: Api) -> None:
    worker = register(api, name="gone")
    assert api.call("DELETE", f"/v1/workers/{worker}").status_code == 204

    console.open("/console/workers")
    expect(console.row(worker)).to_have_count(0)
    console.page.get_by_role("link", name="Show ended workers").click()
    expect(console.cell(worker, "State")).to_have_text("left")
    assert console.path == "/console/workers?gone=true"


def test_a_hostile_worker_is_shown_as_text_and_fits_a_phone(
    open_console: OpenConsole, server: LiveServer, api: Api
) -> None:
    worker = register(api, name=HOSTILE, host=HOSTILE, labels={HOSTILE: HOSTILE})
    phone = open_console(server.url, width=360, scheme="dark")

    for path in ("/console/workers", f"/console/workers/{worker}"):
        phone.open(path)
        expect(phone.page.locator("main")).to_contain_text(HOSTILE)
        assert phone.page.locator("main img").count() == 0
        assert not phone.is_too_wide(), path


def test_a_reader_cannot_drain_workers(
    server_with_keys: LiveServer, open_console: OpenConsole, new_key: NewKey
) -> None:
    worker = register(Api(server_with_keys.url, key=new_key()), name="w")
    reader = log_in(open_console, server_with_keys.url, new_key(Role.READ))

    reader.open(f"/console/workers/{worker}")

    expect(reader.page.locator('button[data-action="Drain"]')).to_be_disabled()
