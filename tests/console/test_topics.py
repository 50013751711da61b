"""Topics and their subscriptions."""

from __future__ import annotations

from tests.console.driver import Console, expect
from tests.console.shell import run_command
from tests.edge.api import Api, a_name, ok


def test_a_topic_is_shown_with_its_subscriptions_and_one_is_removed(
    console: Console, api: Api
) -> None:
    topic = a_name("orders")
    for name, kinds in (("mailer", ["order.*"]), ("audit", [])):
        ok(api.call("PUT", f"/v1/topics/{topic}/subscriptions/{name}", {"kinds": kinds}))
    ok(api.call("POST", f"/v1/topics/{topic}/events", {"body": 1, "kind": "order.paid"}))

    console.open("/console/topics")
    expect(console.cell(topic, "Published")).to_have_text("1")
    console.row(topic).get_by_role("link").click()

    expect(console.heading).to_have_text(topic)
    expect(console.cell("mailer", "Kinds")).to_have_text("order.*")
    expect(console.cell("audit", "Kinds")).to_have_text("all")
    expect(console.cell("mailer", "Queue")).to_have_text(f"{topic}.mailer")
    console.shoot("topic")
    console.row("audit").locator("button").click()
    command = console.dialog.command()
    console.dialog.confirm()
    expect(console.row("audit")).to_have_count(0)
    run_command(command.replace("audit", "mailer"))
    assert api.get(f"/v1/topics/{topic}")["subscriptions"] == []
