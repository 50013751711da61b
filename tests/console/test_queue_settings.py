"""The settings of a queue: viewing and changing them."""

from __future__ import annotations

from tests.console.driver import Console, Dialog, expect
from tests.console.shell import run_call, run_command
from tests.edge.api import Api


def change(console: Console, name: str, **values: str) -> Dialog:
    console.open(f"/console/queues/{name}/settings")
    for label, value in values.items():
        field = console.page.locator("form").get_by_label(label.replace("_", " "), exact=True)
        if field.evaluate("field => field.tagName") == "SELECT":
            field.select_option(value)
        else:
            field.fill(value)
    console.page.get_by_role("button", name="Save").click()
    return console.dialog


CHANGES = {
    "Lease": "2m",
    "Wait": "10s",
    "Redelivery": "back",
    "Attempts": "none",
    "Back-off": "list:1s,10s,5m",
    "Dead-letter_queue": "somewhere",
    "Retention": "7d",
    "Messages": "1000",
    "Body_size": "64KiB",
    "Leased_at_once": "4",
    "Rate_of_claims": "600/1m,50",
    "Fair_share": "yes",
    "Weights": "acme=3\nbig=2",
    "Dedup_window": "1h30m",
    "Dedup_by_content": "yes",
    "Labels": "team=it's us\nstage=test",
}
CHANGED = {
    "lease_ms": 120_000,
    "wait_ms": 10_000,
    "redelivery": "back",
    "max_attempts": None,
    "backoff": {"type": "list", "delays_ms": [1_000, 10_000, 300_000]},
    "dead_letter_queue": "somewhere",
    "retention_ms": 7 * 86_400_000,
    "max_messages": 1_000,
    "max_body_bytes": 65_536,
    "max_leased": 4,
    "rate": {"limit": 600, "per_ms": 60_000, "burst": 50},
    "is_fair": True,
    "weights": {"acme": 3, "big": 2},
    "dedup_window_ms": 5_400_000,
    "dedup_by_content": True,
    "labels": {"team": "it's us", "stage": "test"},
}


def test_settings_are_changed_and_the_others_stay(console: Console, api: Api) -> None:
    names = [api.make_queue("set", max_crashes=7) for _ in range(3)]

    dialog = change(console, names[0], **CHANGES)
    console.shoot("settings-dialog")
    dialog.confirm()
    console.expect_toast("has new settings")
    console.shoot("settings")
    run_command(change(console, names[1], **CHANGES).command())
    run_call(change(console, names[2], **CHANGES).call())

    for name in names:
        settings = api.queue(name)["settings"]
        assert {key: settings[key] for key in CHANGED} == CHANGED
        assert settings["max_crashes"] == 7


def test_shown_settings_can_be_saved_unchanged(console: Console, api: Api) -> None:
    name = api.make_queue("set", **CHANGED)
    console.open(f"/console/queues/{name}/settings")

    expect(console.page.get_by_role("button", name="Save")).to_be_disabled()
    for label, value in CHANGES.items():
        field = console.page.locator("form").get_by_label(label.replace("_", " "), exact=True)
        assert field.input_value() == value, label


def test_an_invalid_setting_is_not_saved(console: Console, api: Api, name: str) -> None:
    page = console.open(f"/console/queues/{name}/settings")
    problem = page.locator("main .problem")

    page.get_by_label("Lease", exact=True).fill("soon")
    expect(problem).to_contain_text("Lease: “soon” is not a time")
    expect(page.get_by_role("button", name="Save")).to_be_disabled()
    page.get_by_label("Lease", exact=True).fill("13h")
    page.get_by_role("button", name="Save").click()
    console.dialog.try_to_confirm()

    console.dialog.expect_problem("lease_ms must be from 0 to")
    console.forgive("400 (Bad Request)")


def test_all_labels_can_be_removed(console: Console, api: Api) -> None:
    for way in ("console", "command"):
        name = api.make_queue("set", labels={"team": "x"})
        dialog = change(console, name, Labels="")
        if way == "console":
            dialog.confirm()
            console.expect_toast("has new settings")
        else:
            run_command(dialog.command())
        assert api.queue(name)["settings"]["labels"] == {}
