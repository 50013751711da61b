"""One queue: what is in it, and everything that can be done to it, each also from a shell."""

from __future__ import annotations

import re

import pytest

from tests.clocks import ManualClock
from tests.console.conftest import aside
from tests.console.driving import Console, Dialog, expect
from tests.console.shell import run_call, run_command
from tests.edge.api import Api, a_name
from tests.edge.duties import sample
from tests.edge.live import LiveServer

A_LINE = re.compile(r"^M[\d.]+ [\d.]+L")
HOSTILE = "<img src=x onerror=\"document.title='caught'\">"


@pytest.fixture
def name(api: Api) -> str:
    return api.make_queue("one")


def open_queue(console: Console, name: str) -> None:
    console.open(f"/console/queues/{name}")
    expect(console.heading).to_contain_text(name)


def test_it_tells_what_is_in_it_and_how_old_the_first_is(
    console: Console, api: Api, name: str, clock: ManualClock
) -> None:
    api.die(name)
    api.send(name)
    api.send(name, delay_ms=3_600_000)
    clock.advance(minutes=4)

    open_queue(console, name)

    for label, value in (("Ready", "1"), ("Waiting", "1"), ("Leased", "0"), ("Dead", "1")):
        expect(console.figure(label)).to_have_text(value)
    expect(console.figure("Oldest")).to_have_text("4m")
    expect(console.page.locator(".facts").first).to_contain_text("Sent3")
    console.shoot("queue")


def test_it_follows_what_happens(console: Console, api: Api, name: str) -> None:
    open_queue(console, name)
    expect(console.page.locator(".live")).to_have_attribute("data-state", "live")

    api.send(name)
    expect(console.figure("Ready")).to_have_text("1")
    api.claim_one(name)
    expect(console.figure("Leased")).to_have_text("1")
    expect(console.figure("Ready")).to_have_text("0")


def test_graphs_are_drawn_from_what_was_written_down(
    console: Console, api: Api, server: LiveServer, clock: ManualClock, name: str
) -> None:
    clock.advance(hours=2)
    for sends in (0, 3, 5):
        for _ in range(sends):
            api.send(name)
        clock.advance(minutes=1)
        aside(lambda: sample(server))
    open_queue(console, name)

    chart = console.page.locator('[data-chart="Backlog"]')
    expect(chart.locator("path.line.tone-ready")).to_have_attribute("d", A_LINE)
    chart.locator("svg").focus()
    console.page.keyboard.press("ArrowLeft")
    expect(chart.locator(".readout")).to_contain_text("ready 8")
    console.page.keyboard.press("ArrowLeft")
    expect(chart.locator(".readout")).to_contain_text("ready 3")
    console.shoot("queue-graphs")

    chart.get_by_role("button", name="ready").click()
    expect(chart.locator("path.line.tone-ready")).to_have_count(0)
    console.page.get_by_role("link", name="7d", exact=True).click()
    expect(console.page.get_by_role("link", name="7d", exact=True)).to_have_attribute(
        "aria-current", "true"
    )
    assert console.path == f"/console/queues/{name}?range=7d"


def test_a_queue_that_is_not_there_is_told_so(console: Console) -> None:
    console.open("/console/queues/no-such-queue")

    expect(console.heading).to_have_text("Not found")
    console.forgive("404 (Not Found)")


def test_what_people_have_written_is_shown_and_never_run(console: Console, api: Api) -> None:
    name = api.make_queue(labels={"team": HOSTILE, HOSTILE: "x"})

    open_queue(console, name)
    expect(console.page.locator(".page-head .badge").first).to_contain_text(HOSTILE)
    console.open(f"/console/queues/{name}/settings")

    assert HOSTILE in console.page.get_by_label("Labels").input_value()
    assert console.page.locator("main img").count() == 0
    assert console.page.title() != "caught"


# ---- actions: the dialog, what it says, what it does, and the same from a shell


def test_a_queue_is_paused_and_resumed(console: Console, api: Api, name: str) -> None:
    open_queue(console, name)

    dialog = console.ask("Pause")
    command, call = dialog.command(), dialog.call()
    console.shoot("pause")
    dialog.confirm()
    console.told("is paused")
    expect(console.page.locator(".page-head .badge")).to_have_text("paused")
    assert api.queue(name)["is_paused"]

    dialog = console.ask("Resume")
    resume = dialog.command()
    dialog.confirm()
    console.told("not paused any more")
    assert not api.queue(name)["is_paused"]

    run_command(command)
    assert api.queue(name)["is_paused"]
    run_command(resume)
    assert run_call(call)["is_paused"]


def test_a_message_is_sent(console: Console, api: Api, name: str) -> None:
    body = '{"it\'s": "$HOME \\"quoted\\"", "n": 1}'
    told = {"it's": '$HOME "quoted"', "n": 1}

    def ask() -> Dialog:
        open_queue(console, name)
        return console.ask("Send").fill("Body (JSON)", body).fill("Kind", "wel come")

    ask().confirm()
    console.told("is on disk")
    run_command(ask().command())
    run_call(ask().call())

    messages = api.claim(name, limit=10)
    assert [(m["body"], m["kind"]) for m in messages] == [(told, "wel come")] * 3


def test_what_is_no_json_is_not_sent(console: Console, api: Api, name: str) -> None:
    open_queue(console, name)
    dialog = console.ask("Send")

    dialog.fill("Body (JSON)", "{").expect_problem("not JSON")
    expect(dialog.box.get_by_role("button", name="Send")).to_be_disabled()
    dialog.fill("Body (JSON)", "1").fill("Delay", "soon").expect_problem("a time such as")
    dialog.fill("Delay", "1h30m").confirm()

    console.told("is on disk")
    assert api.counts(name) == {"waiting": 1}


def test_a_purge_says_how_many_before_it_empties_the_queue(
    console: Console, api: Api, name: str
) -> None:
    def fill() -> None:
        api.die(name)
        api.send(name)

    fill()
    open_queue(console, name)
    dialog = console.ask("Purge").expect_count("2 messages are concerned.")
    command, call = dialog.command(), dialog.call()
    dialog.cancel()
    assert api.counts(name) == {"ready": 1, "dead": 1}
    console.ask("Purge").expect_count("2 messages are concerned.").confirm()
    console.told("2 cancelled")
    assert api.counts(name) == {}

    fill()
    run_command(command)
    assert api.counts(name) == {}
    fill()
    assert run_call(call) == {"cancelled": 2}


def test_dead_messages_are_brought_back(console: Console, api: Api, name: str) -> None:
    other = api.make_queue("other")
    for _ in range(6):
        api.die(name)

    def ask() -> Dialog:
        open_queue(console, name)
        dialog = console.ask("Redrive").fill("To", other).fill("At most", "2")
        return dialog.expect_count("2 dead messages are concerned.")

    ask().confirm()
    console.told("2 redriven")
    run_command(ask().command())
    assert run_call(ask().call()) == {"redriven": 2}

    assert (api.counts(name), api.counts(other)) == ({}, {"ready": 6})


def test_dead_letters_are_counted_where_they_have_come(console: Console, api: Api) -> None:
    letters = api.make_queue("letters")
    name = api.make_queue(dead_letter_queue=letters)
    for _ in range(2):
        api.die(name)
    open_queue(console, letters)

    console.ask("Redrive").expect_count("2 dead messages are concerned.").confirm()

    console.told("2 redriven")
    assert api.counts(name) == {"ready": 2}


def test_messages_are_moved_in_the_background_and_a_move_can_be_stopped(
    console: Console, api: Api, name: str
) -> None:
    other = api.make_queue("other")
    for _ in range(3):
        api.send(name)
    open_queue(console, name)

    dialog = console.ask("Move").fill("To", other).fill("At most per second", "1")
    dialog.expect_count("3 messages are concerned.")
    assert f"moves start {name} --to {other} --max-per-second 1" in dialog.command()
    dialog.confirm()

    console.told("The move has begun")
    table = console.page.get_by_role("table", name="Moves out of this queue")
    expect(table).to_contain_text("running")
    [move] = api.get(f"/v1/queues/{name}/moves")["moves"]
    dialog = console.ask("Cancel")
    assert dialog.command().startswith(f"penstock moves cancel {move['id']}")
    dialog.confirm()
    expect(table).to_contain_text("cancel")


def test_a_queue_is_removed_with_all_it_holds(console: Console, api: Api) -> None:
    name = api.make_queue()

    def fill() -> None:
        api.call("PUT", f"/v1/queues/{name}")
        api.send(name)

    fill()
    open_queue(console, name)
    dialog = console.ask("Remove").expect_count("1 message is concerned.")
    command, call = dialog.command(), dialog.call()
    dialog.confirm()
    console.told("is removed")
    expect(console.heading).to_have_text("Queues")
    # The page of the queue asks for it once in a while, perhaps just then.
    console.overlook("404 (Not Found)")
    assert api.call("GET", f"/v1/queues/{name}").status_code == 404

    fill()
    run_command(command)
    assert api.call("GET", f"/v1/queues/{name}").status_code == 404
    fill()
    run_call(call)
    assert api.call("GET", f"/v1/queues/{name}").status_code == 404


def test_a_queue_is_made(console: Console, api: Api) -> None:
    names = [a_name("made") for _ in range(3)]

    def ask(name: str) -> Dialog:
        console.open("/console/queues")
        return console.ask("New queue").fill("Name", name).fill("Ordering", "group")

    ask(names[0]).confirm()
    console.told("is there")
    expect(console.heading).to_contain_text(names[0])
    run_command(ask(names[1]).command())
    run_call(ask(names[2]).call())

    for name in names:
        assert api.queue(name)["settings"]["ordering"] == "group"


def test_a_new_queue_cannot_reset_the_settings_of_an_existing_one(
    console: Console, api: Api
) -> None:
    name = api.make_queue("taken", lease_ms=77_000)
    console.open("/console/queues")
    dialog = console.ask("New queue").fill("Name", name)
    assert "if-none-match: *" in dialog.call()

    dialog.try_to_confirm()

    dialog.expect_problem(f"queue '{name}' already exists")
    console.forgive("409 (Conflict)")
    assert api.queue(name)["settings"]["lease_ms"] == 77_000


def test_a_refusal_is_told_where_one_asked(console: Console) -> None:
    console.open("/console/queues")
    dialog = console.ask("New queue").fill("Name", "not a name")

    dialog.try_to_confirm()

    dialog.expect_problem("a queue name is 1 to 80 letters")
    console.forgive("400 (Bad Request)")


# ---- settings


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
    console.told("has new settings")
    console.shoot("settings")
    run_command(change(console, names[1], **CHANGES).command())
    run_call(change(console, names[2], **CHANGES).call())

    for name in names:
        settings = api.queue(name)["settings"]
        assert {key: settings[key] for key in CHANGED} == CHANGED
        assert settings["max_crashes"] == 7


def test_what_is_shown_can_be_saved_again(console: Console, api: Api) -> None:
    name = api.make_queue("set", **CHANGED)
    console.open(f"/console/queues/{name}/settings")

    expect(console.page.get_by_role("button", name="Save")).to_be_disabled()
    for label, value in CHANGES.items():
        field = console.page.locator("form").get_by_label(label.replace("_", " "), exact=True)
        assert field.input_value() == value, label


def test_a_setting_that_makes_no_sense_is_not_saved(console: Console, api: Api, name: str) -> None:
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


def test_labels_can_all_be_taken_away(console: Console, api: Api) -> None:
    for way in ("console", "command"):
        name = api.make_queue("set", labels={"team": "x"})
        dialog = change(console, name, Labels="")
        if way == "console":
            dialog.confirm()
            console.told("has new settings")
        else:
            run_command(dialog.command())
        assert api.queue(name)["settings"]["labels"] == {}
