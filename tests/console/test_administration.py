"""Keys and settings are shown without secrets."""

from __future__ import annotations

from penstock.domain.access.api_key import Role
from tests.console.conftest import NewKey, OpenConsole
from tests.console.driver import Console, expect
from tests.console.login import log_in
from tests.edge.api import Api
from tests.edge.live import LiveServer


def test_settings_are_shown_with_their_descriptions(console: Console) -> None:
    console.open("/console/settings")

    expect(console.cell("server.port", "Meaning")).to_contain_text("TCP port")
    expect(console.cell("server.port", "Value")).to_contain_text("changed")
    console.page.get_by_role("link", name="Show only changed settings").click()
    expect(console.row("limits.max_batch")).to_have_count(0)
    expect(console.row("server.port")).to_be_visible()
    console.shoot("settings")


def test_without_keys_the_page_says_so(console: Console) -> None:
    console.open("/console/keys")

    expect(console.page.locator("tr.empty")).to_contain_text("There are no keys")


def test_keys_are_shown_without_their_secrets(
    server_with_keys: LiveServer, open_console: OpenConsole, new_key: NewKey
) -> None:
    hostile = "<img src=x onerror=alert(1)>"
    secret = new_key(Role.READ, name=hostile, queues=("mail*",))
    key_id = secret.split("_")[1]
    reader = log_in(open_console, server_with_keys.url, new_key(Role.READ))

    reader.open("/console/keys")

    expect(reader.cell(key_id, "Name")).to_have_text(hostile)
    expect(reader.cell(key_id, "Roles")).to_contain_text("read")
    expect(reader.cell(key_id, "Queues")).to_have_text("mail*")
    assert secret.split("_")[2] not in reader.page.content()
    assert reader.page.locator("main img").count() == 0
    reader.shoot("keys")


def test_pages_fit_a_phone(open_console: OpenConsole, server: LiveServer) -> None:
    phone = open_console(server.url, width=360, scheme="dark")

    for path in ("/console/settings", "/console/keys"):
        phone.open(path)
        assert not phone.is_too_wide(), path


def test_a_key_is_created_with_its_secret_shown_once_and_revoked(
    server_with_keys: LiveServer, open_console: OpenConsole, new_key: NewKey
) -> None:
    console = log_in(open_console, server_with_keys.url, new_key())
    console.open("/console/keys")

    dialog = console.ask("New key").fill("Name", "a robot").fill("Queues", "mail.* orders")
    dialog.box.get_by_label("Role produce").check()
    assert '"roles":["produce"],"queues":["mail.*","orders"]' in dialog.call()
    dialog.box.locator('footer button[type="submit"]').click()
    secret = console.page.locator('[data-form="Secret"] code')
    expect(secret).to_contain_text("pk_")
    key_id = secret.inner_text().split("_")[1]
    console.page.get_by_role("button", name="Close").click()
    expect(console.cell(key_id, "Name")).to_have_text("a robot")
    expect(console.cell(key_id, "Queues")).to_have_text("mail.*, orders")
    assert secret.count() == 0

    console.row(key_id).locator('button[data-action="Revoke"]').click()
    console.dialog.confirm()
    expect(console.cell(key_id, "State")).to_have_text("revoked")

    page = console.open("/console/facts?kind=changed_by_caller&subject=" + key_id)
    expect(page.locator('[data-label="What"]')).to_have_text("revokeKey")
    expect(page.locator('[data-label="Who"]')).to_contain_text("from 127.0.0.1")
    console.shoot("facts")


def test_a_change_is_shown_with_the_settings_before_and_after(console: Console, api: Api) -> None:
    name = api.make_queue("watched", max_attempts=3)
    api.call("PATCH", f"/v1/queues/{name}", {"max_attempts": 7})

    console.open(f"/console/facts?subject={name}")

    details = console.page.locator('[data-label="Details"]').first
    expect(details).to_contain_text("max_attempts: 3 → 7")
    console.page.get_by_role("link", name="Changes only").click()
    expect(console.page.get_by_role("link", name="All facts")).to_be_visible()
