"""Actions on a queue: the dialog, its effect, and the same command and API call from a shell."""

from __future__ import annotations

from tests.console.driver import Console, Dialog, expect
from tests.console.shell import run_call, run_command
from tests.edge.api import Api, a_name


def test_a_queue_is_paused_and_resumed(console: Console, api: Api, name: str) -> None:
    console.open_queue(name)

    dialog = console.ask("Pause")
    command, call = dialog.command(), dialog.call()
    console.shoot("pause")
    dialog.confirm()
    console.expect_toast("is paused")
    expect(console.page.locator(".page-head .badge")).to_have_text("paused")
    assert api.queue(name)["is_paused"]

    dialog = console.ask("Resume")
    resume = dialog.command()
    dialog.confirm()
    console.expect_toast("no longer paused")
    assert not api.queue(name)["is_paused"]

    run_command(command)
    assert api.queue(name)["is_paused"]
    run_command(resume)
    assert run_call(call)["is_paused"]


def test_a_message_is_sent(console: Console, api: Api, name: str) -> None:
    body = '{"it\'s": "$HOME \\"quoted\\"", "n": 1}'
    sent = {"it's": '$HOME "quoted"', "n": 1}

    def ask() -> Dialog:
        console.open_queue(name)
        return console.ask("Send").fill("Body (JSON)", body).fill("Kind", "wel come")

    ask().confirm()
    console.expect_toast("is stored")
    run_command(ask().command())
    run_call(ask().call())

    messages = api.claim(name, limit=10)
    assert [(m["body"], m["kind"]) for m in messages] == [(sent, "wel come")] * 3


def test_an_invalid_body_or_delay_is_not_sent(console: Console, api: Api, name: str) -> None:
    console.open_queue(name)
    dialog = console.ask("Send")

    dialog.fill("Body (JSON)", "{").expect_problem("not JSON")
    expect(dialog.box.get_by_role("button", name="Send")).to_be_disabled()
    dialog.fill("Body (JSON)", "1").fill("Delay", "soon").expect_problem("a time such as")
    dialog.fill("Delay", "1h30m").confirm()

    console.expect_toast("is stored")
    assert api.counts(name) == {"waiting": 1}


def test_a_purge_counts_the_messages_before_it_cancels_them(
    console: Console, api: Api, name: str
) -> None:
    def fill() -> None:
        api.die(name)
        api.send(name)

    fill()
    console.open_queue(name)
    dialog = console.ask("Purge").expect_count("2 messages are affected.")
    command, call = dialog.command(), dialog.call()
    dialog.cancel()
    assert api.counts(name) == {"ready": 1, "dead": 1}
    console.ask("Purge").expect_count("2 messages are affected.").confirm()
    console.expect_toast("2 cancelled")
    assert api.counts(name) == {}

    fill()
    run_command(command)
    assert api.counts(name) == {}
    fill()
    assert run_call(call) == {"cancelled": 2}


def test_dead_messages_are_redriven(console: Console, api: Api, name: str) -> None:
    other = api.make_queue("other")
    for _ in range(6):
        api.die(name)

    def ask() -> Dialog:
        console.open_queue(name)
        dialog = console.ask("Redrive").fill("To", other).fill("At most", "2")
        return dialog.expect_count("2 dead messages are affected.")

    ask().confirm()
    console.expect_toast("2 redriven")
    run_command(ask().command())
    assert run_call(ask().call()) == {"redriven": 2}

    assert (api.counts(name), api.counts(other)) == ({}, {"ready": 6})


def test_dead_letters_are_counted_in_the_dead_letter_queue(console: Console, api: Api) -> None:
    letters = api.make_queue("letters")
    name = api.make_queue(dead_letter_queue=letters)
    for _ in range(2):
        api.die(name)
    console.open_queue(letters)

    console.ask("Redrive").expect_count("2 dead messages are affected.").confirm()

    console.expect_toast("2 redriven")
    assert api.counts(name) == {"ready": 2}


def test_messages_are_moved_in_the_background_and_a_move_can_be_stopped(
    console: Console, api: Api, name: str
) -> None:
    other = api.make_queue("other")
    for _ in range(3):
        api.send(name)
    console.open_queue(name)

    dialog = console.ask("Move").fill("To", other).fill("At most per second", "1")
    dialog.expect_count("3 messages are affected.")
    assert f"moves start {name} --to {other} --max-per-second 1" in dialog.command()
    dialog.confirm()

    console.expect_toast("The move has started")
    table = console.page.get_by_role("table", name="Moves out of this queue")
    expect(table).to_contain_text("running")
    [move] = api.get(f"/v1/queues/{name}/moves")["moves"]
    dialog = console.ask("Cancel")
    assert dialog.command().startswith(f"penstock moves cancel {move['id']}")
    dialog.confirm()
    expect(table).to_contain_text("cancel")


def test_a_queue_is_deleted_with_all_its_messages(console: Console, api: Api) -> None:
    name = api.make_queue()

    def fill() -> None:
        api.call("PUT", f"/v1/queues/{name}")
        api.send(name)

    fill()
    console.open_queue(name)
    dialog = console.ask("Remove").expect_count("1 message is affected.")
    command, call = dialog.command(), dialog.call()
    dialog.confirm()
    console.expect_toast("is deleted")
    expect(console.heading).to_have_text("Queues")
    # The page polls the queue and may just have done so.
    console.overlook("404 (Not Found)")
    assert api.call("GET", f"/v1/queues/{name}").status_code == 404

    fill()
    run_command(command)
    assert api.call("GET", f"/v1/queues/{name}").status_code == 404
    fill()
    run_call(call)
    assert api.call("GET", f"/v1/queues/{name}").status_code == 404


def test_a_queue_is_created(console: Console, api: Api) -> None:
    names = [a_name("made") for _ in range(3)]

    def ask(name: str) -> Dialog:
        console.open("/console/queues")
        return console.ask("New queue").fill("Name", name).fill("Ordering", "group")

    ask(names[0]).confirm()
    console.expect_toast("is created")
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


def test_an_error_is_shown_in_the_dialog(console: Console) -> None:
    console.open("/console/queues")
    dialog = console.ask("New queue").fill("Name", "not a name")

    dialog.try_to_confirm()

    dialog.expect_problem("a queue name is 1 to 80 letters")
    console.forgive("400 (Bad Request)")


def test_a_message_is_sent_with_all_its_fields_and_sent_again(console: Console, api: Api) -> None:
    name = api.make_queue("orders", ordering="group")
    console.open_queue(name)
    dialog = console.ask("Send").fill("Body (JSON)", '{"n": 1}').fill("Kind", "order")
    dialog.fill("Group", "ada").fill("Tags", "vip, eu").fill("About (entity id)", "order-17")
    dialog.fill("Priority", "-3").fill("Attributes", "lang=de\nnote=a=b c")
    command, call = dialog.command(), dialog.call()
    dialog.confirm()
    console.expect_toast("is stored")
    run_command(command)
    run_call(call)
    sent = api.get(f"/v1/queues/{name}/messages")["messages"]
    console.open(f"/console/messages/{sent[0]['id']}")
    console.ask("Send again").confirm()
    expect(console.page.locator(".page-head code")).not_to_have_text(sent[0]["id"])

    messages = api.get(f"/v1/queues/{name}/messages")["messages"]
    fields = ("body", "kind", "group", "tags", "entity_id", "priority", "attributes")
    assert len({message["id"] for message in messages}) == 4
    for message in messages:
        assert {field: message[field] for field in fields} == {
            "body": {"n": 1},
            "kind": "order",
            "group": "ada",
            "tags": ["vip", "eu"],
            "entity_id": "order-17",
            "priority": -3,
            "attributes": {"lang": "de", "note": "a=b c"},
        }


def test_many_messages_are_purged_only_if_the_name_is_typed(
    console: Console, api: Api, name: str
) -> None:
    api.send_many(name, [1] * 100)
    console.open_queue(name)
    dialog = console.ask("Purge").expect_count("100 messages are affected.")
    confirm = dialog.box.locator('footer button[type="submit"]')
    expect(confirm).to_be_disabled()
    dialog.fill(f"Type {name} to confirm", name[:-1])
    expect(confirm).to_be_disabled()

    dialog.fill(f"Type {name} to confirm", name).confirm()

    console.expect_toast("100 cancelled")
    assert api.counts(name) == {}


def test_a_dead_letter_queue_names_the_queues_it_serves(console: Console, api: Api) -> None:
    letters = api.make_queue("letters")
    name = api.make_queue("source", dead_letter_queue=letters)
    console.open_queue(letters)

    expect(console.page.locator(".notice")).to_have_text(
        f"This is the dead-letter queue of {name}."
    )
    console.page.locator(".notice").get_by_role("link", name=name).click()
    expect(console.heading).to_contain_text(name)
