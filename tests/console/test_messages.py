"""Messages: filtering, showing, and changing one or many by hand."""

from __future__ import annotations

import pytest

from penstock.domain.access.api_key import Role
from tests.clocks import ManualClock
from tests.console.conftest import NewKey, OpenConsole
from tests.console.driver import Console, expect
from tests.console.login import log_in
from tests.console.shell import run_call, run_command
from tests.edge.api import Api, a_name, ok
from tests.edge.live import LiveServer

HOSTILE = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"


def fails(api: Api, queue: str, error: str) -> None:
    ok(api.act(api.claim_one(queue, claimed_by="w-1")["receipt"], "fail", error=error))


def test_messages_are_listed_by_state_with_their_bodies(console: Console, api: Api) -> None:
    queue = api.make_queue()
    ready = api.send(queue, {"to": "ada"}, kind="welcome", tags=["a", "b"], group="g")
    waiting = api.send(queue, delay_ms=60_000)
    dead = api.die(queue, priority=-1)

    console.open(f"/console/messages?queue={queue}")
    assert console.keys() == [ready]
    expect(console.cell(ready, "Message")).to_contain_text("welcome")
    expect(console.cell(ready, "Body")).to_have_text('{"to":"ada"}')
    expect(console.cell(ready, "Group, tags")).to_have_text("group g a b")
    console.shoot("messages")

    console.page.get_by_role("link", name="waiting 1").click()
    expect(console.row(waiting)).to_be_visible()
    console.page.get_by_role("link", name="dead 1").click()
    expect(console.cell(dead, "Error")).to_have_text("broken")
    assert console.path == f"/console/messages?queue={queue}&state=dead"


def test_a_message_that_is_done_shows_its_result(console: Console, api: Api) -> None:
    queue = api.make_queue()
    plain, kept = api.finish(queue), api.send(queue)
    result = {"total": 12345678901234567890, "note": HOSTILE}
    ok(api.act(api.claim_one(queue)["receipt"], "complete", result=result))

    console.open(f"/console/messages/{kept}")
    expect(console.page.locator("main")).to_contain_text("What it returned")
    expect(console.page.locator("main")).to_contain_text('"total": 12345678901234567890')
    expect(console.page.locator("main")).to_contain_text("<script>")
    console.open(f"/console/messages/{plain}")
    expect(console.page.locator("main")).to_contain_text("What was sent")
    expect(console.page.locator("main")).not_to_contain_text("What it returned")


def test_filters_narrow_the_list_and_are_part_of_the_url(console: Console, api: Api) -> None:
    queue = api.make_queue()
    tag = a_name("tag")
    mine = api.send(queue, kind="k", tags=[tag], group="g", entity_id="e")
    other = api.send(queue, kind="other")
    console.open(f"/console/messages?queue={queue}")
    assert console.keys() == [mine, other]

    for label, value in (("Kind", "k"), ("Tag", tag), ("Group", "g"), ("About (entity id)", "e")):
        console.page.get_by_label(label, exact=True).fill(value)
        console.page.get_by_role("button", name="Find").click()
        expect(console.page.locator("tr[data-key]")).to_have_count(1)
        assert console.keys() == [mine]
        console.page.get_by_role("button", name="Clear").click()
        expect(console.row(other)).to_be_visible()

    console.open(f"/console/messages?queue={queue}&kind=k&group=g")
    assert console.keys() == [mine]
    expect(console.page.get_by_label("Kind", exact=True)).to_have_value("k")
    console.open(f"/console/messages?tag={tag}")
    assert console.keys() == [mine]
    console.open(f"/console/messages?queue={queue}&kind=nothing")
    expect(console.page.locator("tr.empty")).to_have_text("No message matches.")


def test_messages_are_filtered_by_time(console: Console, api: Api, clock: ManualClock) -> None:
    queue = api.make_queue()
    early = api.send(queue)
    clock.advance(hours=1)
    late = api.send(queue)
    at = api.message(late)["sent_at"][:19]

    console.open(f"/console/messages?queue={queue}")
    console.page.get_by_label("Sent from").fill(at)
    console.page.get_by_role("button", name="Find").click()
    expect(console.page.locator("tr[data-key]")).to_have_count(1)
    assert console.keys() == [late]
    assert "sent_from=" in console.path
    console.page.get_by_role("button", name="Clear").click()
    console.page.get_by_label("Sent before").fill(at)
    console.page.get_by_role("button", name="Find").click()
    expect(console.page.locator("tr[data-key]")).to_have_count(1)
    assert console.keys() == [early]


def test_many_messages_are_paged(console: Console, api: Api) -> None:
    queue = api.make_queue()
    ids = [api.send(queue, n) for n in range(60)]
    console.open(f"/console/messages?queue={queue}")

    assert console.keys() == ids[:50]
    console.page.get_by_role("link", name="Next page").click()
    expect(console.row(ids[50])).to_be_visible()
    assert console.keys() == ids[50:]


def test_a_message_is_shown_with_its_history(console: Console, api: Api) -> None:
    queue = api.make_queue(backoff={"type": "fixed", "delay_ms": 0}, max_attempts=3)
    message_id = api.send(
        queue,
        {"big": 2**60 + 1, "list": [1, 2]},
        kind="invoice",
        attributes={"lang": "de"},
        tags=["t"],
    )
    fails(api, queue, "mail server said 451")
    fails(api, queue, "mail server said 550")
    console.open("/console/messages")

    console.page.get_by_placeholder("Id of a message").fill(message_id)
    console.page.get_by_role("button", name="Open").click()

    expect(console.heading).to_contain_text("invoice")
    body = console.page.locator('[data-form="Body"] code')
    assert body.inner_text() == (
        '{\n  "big": 1152921504606846977,\n  "list": [\n    1,\n    2\n  ]\n}'
    )
    expect(console.page.locator('[data-form="Attributes"] code')).to_contain_text('"lang": "de"')
    steps = console.page.locator(".timeline li")
    expect(steps).to_have_count(3)
    expect(steps.nth(1)).to_contain_text("mail server said 451")
    expect(steps.nth(2)).to_contain_text("mail server said 550")
    expect(steps.nth(2)).to_contain_text("by w-1")

    fails(api, queue, "gone for good")
    console.page.reload()
    expect(console.page.locator('[data-step="dead"]')).to_contain_text("attempts_exhausted")
    notice = console.page.locator(".notice.bad")
    expect(notice).to_have_text("gone for goodIt died: attempts exhausted.")
    console.shoot("message")


def test_the_steps_of_a_message_are_shown(console: Console, api: Api) -> None:
    queue = api.make_queue()
    message_id = api.send(queue)
    lease = f"/v1/leases/{api.claim_one(queue)['receipt']}"
    ok(api.call("POST", f"{lease}/steps", {"name": "charge", "outcome": {"payment": 17}}))
    ok(api.call("POST", f"{lease}/waits", {"signal": "approved", "timeout_ms": 3_600_000}))

    console.open(f"/console/messages/{message_id}")

    expect(console.page.locator('[data-form="charge"]')).to_contain_text('"payment": 17')
    expect(console.page.get_by_text("It waits for the signal approved until")).to_be_visible()


def test_a_finished_message_is_still_shown(console: Console, api: Api) -> None:
    message_id = api.finish(api.make_queue(), body={"a": 1})

    console.open(f"/console/messages/{message_id}")

    expect(console.page.locator('[data-step="done"]')).to_be_visible()
    expect(console.page.locator('[data-form="Body"]')).to_contain_text('"a": 1')
    expect(console.page.locator("button[data-action]")).to_have_text(["Send again"])


@pytest.mark.parametrize(
    ("label", "before", "after"),
    [
        ("Complete", "ready", "done"),
        ("Bury", "ready", "dead"),
        ("Cancel", "ready", "cancelled"),
        ("Complete", "waiting", "done"),
        ("Retry now", "waiting", "ready"),
        ("Retry", "dead", "ready"),
        ("Cancel", "dead", "cancelled"),
        ("Cancel", "leased", "cancelled"),
        ("Bury", "leased", "dead"),
    ],
)
def test_a_message_is_changed_by_hand(
    console: Console, api: Api, label: str, before: str, after: str
) -> None:
    queue = api.make_queue()

    def make() -> str:
        if before == "dead":
            return api.die(queue)
        sent = api.send(queue, delay_ms=60_000 if before == "waiting" else 0)
        if before == "leased":
            api.claim_one(queue)
        return sent

    by_button, by_command, by_call = make(), make(), make()
    for message_id in (by_button, by_command, by_call):
        console.open(f"/console/messages/{message_id}")
        dialog = console.ask(label)
        if "Reason" in dialog.box.inner_text():
            dialog.fill("Reason", "it's so")
        if message_id == by_button:
            dialog.confirm()
            console.expect_toast(f"The message is {after}.")
            shown = "dead" if before == "dead" and after == "cancelled" else after
            expect(console.heading.locator(".badge").first).to_have_text(shown)
        elif message_id == by_command:
            run_command(dialog.command())
        else:
            run_call(dialog.call())

    for message_id in (by_button, by_command, by_call):
        message = api.message(message_id)
        if (before, after) == ("dead", "cancelled"):  # its history keeps the outcome dead
            assert ("finished_at" in message, api.counts(queue)) == (True, {})
            continue
        assert message["state"] == after, message_id
        if label in ("Complete", "Bury") or before in ("ready", "leased"):
            assert message["reason"] == "it's so"


def test_a_due_date_is_edited_by_button_command_and_call(console: Console, api: Api) -> None:
    queue = api.make_queue()
    for way in ("button", "command", "call"):
        message_id = api.send(queue)
        console.open(f"/console/messages/{message_id}")
        dialog = console.ask("Due date").fill("Due at", "2090-05-06T07:08:09")
        if way == "button":
            dialog.confirm()
            expect(console.heading.locator(".badge").first).to_have_text("waiting")
        elif way == "command":
            run_command(dialog.command())
        else:
            run_call(dialog.call())
        assert api.message(message_id)["due_at"] == "2090-05-06T07:08:09.000Z", way


def test_a_leased_message_can_only_be_buried_or_cancelled(console: Console, api: Api) -> None:
    queue = api.make_queue()
    message_id = api.send(queue)
    api.claim_one(queue, claimed_by="worker-1")

    console.open(f"/console/messages/{message_id}")

    expect(console.page.locator(".notice")).to_contain_text("A worker has leased it")
    actions = console.page.locator("button[data-action]")
    expect(actions).to_have_text(["Bury", "Cancel", "Send again"])
    console.open(f"/console/messages?queue={queue}&state=leased")
    expect(console.cell(message_id, "By")).to_have_text("worker-1")
    expect(console.page.locator("td.pick")).to_have_count(1)


def test_selected_messages_are_counted_and_then_changed_together(
    console: Console, api: Api
) -> None:
    queue = api.make_queue()
    ids = [api.send(queue, n) for n in range(4)]
    console.open(f"/console/messages?queue={queue}")

    for message_id in ids[:2]:
        console.page.get_by_label(f"Select {message_id}").check()
    expect(console.page.locator(".bulk-what")).to_have_text("2 selected")
    dialog = console.ask("Cancel")
    dialog.expect_count("2 messages are affected.")
    dialog.fill("Reason", "withdrawn")
    dialog.confirm()

    console.expect_toast("2 of 2 cancelled.")
    expect(console.page.locator("tr[data-key]")).to_have_count(2)
    assert console.keys() == ids[2:]
    assert api.message(ids[0])["reason"] == "withdrawn"

    console.page.get_by_label(f"Select {ids[2]}").check()
    run_command(console.ask("Bury").command())
    assert api.counts(queue) == {"ready": 1, "dead": 1}

    console.open(f"/console/messages?queue={queue}")
    console.page.get_by_label(f"Select {ids[3]}").check()
    run_call(console.ask("Bury").call())
    assert api.counts(queue) == {"dead": 2}


@pytest.mark.parametrize(
    ("label", "state", "counts"),
    [
        ("Complete", "ready", {"ready": 1}),
        ("Bury", "ready", {"ready": 1, "dead": 3}),
        ("Cancel", "ready", {"ready": 1}),
        ("Due date", "ready", {"ready": 1, "waiting": 3}),
        ("Retry now", "waiting", {"waiting": 1, "ready": 3}),
        ("Retry", "dead", {"dead": 1, "ready": 3}),
    ],
)
def test_all_matching_messages_are_counted_and_then_changed_together(
    console: Console, api: Api, label: str, state: str, counts: dict[str, int]
) -> None:
    def fill() -> str:
        queue = api.make_queue()
        for kind in ("k", "k", "other", "k"):
            if state == "dead":
                api.die(queue, kind=kind)
            else:
                api.send(queue, kind=kind, delay_ms=60_000 if state == "waiting" else 0)
        return queue

    for way in ("button", "command", "call"):
        queue = fill()
        console.open(f"/console/messages?queue={queue}&state={state}&kind=k")
        dialog = console.ask(label)
        if label == "Due date":
            dialog.fill("Due at", "2090-01-01T00:00:00")
        dialog.expect_count("3 messages are affected.")
        if way == "button":
            dialog.confirm()
            console.expect_toast("3 of 3")
        elif way == "command":
            run_command(dialog.command())
        else:
            run_call(dialog.call())
        assert api.counts(queue) == counts, way


def test_a_hostile_message_is_shown_as_text(console: Console, api: Api) -> None:
    queue = api.make_queue()
    message_id = api.send(
        queue, {HOSTILE: HOSTILE}, kind=HOSTILE, tags=[HOSTILE], group=HOSTILE,
        attributes={HOSTILE: HOSTILE}, entity_id="javascript:alert(1)", trace=HOSTILE,
    )  # fmt: skip
    ok(api.act(api.claim_one(queue, claimed_by=HOSTILE)["receipt"], "fail", error=HOSTILE))

    console.open(f"/console/messages?queue={queue}&state=waiting")
    expect(console.row(message_id)).to_contain_text(HOSTILE)
    console.ask("Cancel").cancel()
    console.open(f"/console/messages/{message_id}")
    expect(console.heading).to_contain_text(HOSTILE)
    expect(console.page.locator(".timeline")).to_contain_text(HOSTILE)

    assert console.page.locator("main img, main script").count() == 0
    assert "owned" not in console.page.title()


def test_messages_fit_a_phone(open_console: OpenConsole, server: LiveServer, api: Api) -> None:
    queue = api.make_queue()
    message_id = api.send(queue, {"word": "x" * 300}, kind="k" * 80, tags=["t" * 80])
    phone = open_console(server.url, width=360, scheme="dark")

    for path in (f"/console/messages?queue={queue}", f"/console/messages/{message_id}"):
        phone.open(path)
        assert not phone.is_too_wide(), path
    phone.shoot("message-phone")


def test_a_reader_sees_messages_and_cannot_act(
    server_with_keys: LiveServer, open_console: OpenConsole, new_key: NewKey
) -> None:
    api = Api(server_with_keys.url, key=new_key())
    queue = api.make_queue()
    message_id = api.send(queue, {"a": 1})
    reader = log_in(open_console, server_with_keys.url, new_key(Role.READ))

    reader.open(f"/console/messages/{message_id}")
    expect(reader.page.locator('[data-form="Body"]')).to_contain_text('"a": 1')
    for label in ("Complete", "Cancel", "Bury", "Due date"):
        button = reader.page.locator(f'button[data-action="{label}"]')
        expect(button).to_be_disabled()
        assert "operate" in str(button.get_attribute("title"))
    reader.open(f"/console/messages?queue={queue}")
    expect(reader.page.locator('.bulk button[data-action="Cancel"]')).to_be_disabled()


def test_the_log_of_a_running_attempt_appears_as_it_grows(console: Console, api: Api) -> None:
    queue = api.make_queue()
    message_id = api.send(queue)
    receipt = api.claim_one(queue)["receipt"]

    def log(seq: int, text: str) -> None:
        line = {"at": "2030-05-01T09:00:00Z", "source": "shop", "text": text}
        part = {"receipt": receipt, "seq": seq, "lines": [line]}
        ok(api.call("POST", "/v1/leases/logs", {"logs": [part]}))

    log(1, HOSTILE)
    console.open(f"/console/messages/{message_id}")
    lines = console.page.get_by_label("Log", exact=True)
    expect(lines).to_contain_text(f"INFO shop: {HOSTILE}")
    log(2, "20 of 200")

    expect(lines).to_contain_text("20 of 200")
    assert "owned" not in console.page.title()
