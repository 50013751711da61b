"""Errors: first on the page of a message and in lists, and grouped, with a retry of each group."""

from __future__ import annotations

from tests.clocks import ManualClock
from tests.console.driver import Console, expect
from tests.console.shell import run_call, run_command
from tests.edge.api import Api, ok

TRACE = """\
shop.PaymentDeclined: card {0}
  at /app/shopjobs.py:22 in charge: raise PaymentDeclined(card) from error
caused by KeyError: {0}
  at /app/cards.py:3 in find: return cards[number]"""


def fail(api: Api, queue: str, error: str) -> None:
    ok(api.act(api.claim_one(queue)["receipt"], "fail", error=error))


def test_the_error_of_a_message_comes_first_and_the_latest_is_open(
    console: Console, api: Api, clock: ManualClock
) -> None:
    quick = {"type": "fixed", "delay_ms": 0}
    name = api.make_queue("failing", max_attempts=2, backoff=quick)
    message = api.send(name)
    for number in (1, 2):
        fail(api, name, TRACE.format(number))
        clock.advance(seconds=1)
    line = "shop.PaymentDeclined: card 2 at shopjobs.py:22"

    page = console.open(f"/console/messages/{message}")
    expect(page.locator(".notice.bad strong")).to_have_text(line)
    folded, opened = page.locator(".step-details").all()
    expect(folded.locator("summary")).to_have_text(line.replace("card 2", "card 1"))
    expect(folded.locator("pre")).to_be_hidden()
    expect(opened.locator("pre")).to_be_visible()
    expect(opened.locator("pre")).to_contain_text("caused by KeyError: 2")
    assert opened.locator("pre").evaluate("box => box.scrollHeight <= box.clientHeight + 1")
    console.shoot("message")

    console.open(f"/console/messages?queue={name}&state=dead")
    expect(console.cell(message, "Error")).to_have_text(line)
    page = console.open(f"/console/history?queue={name}")
    expect(page.locator('[data-label="Why"]')).to_have_text(line)


def test_messages_with_the_same_error_are_retried_together(console: Console, api: Api) -> None:
    name, other = (api.make_queue(start, max_attempts=1) for start in ("pay", "refund"))
    for number, queue in enumerate((name, name, name, other)):
        api.send(queue)
        fail(api, queue, TRACE.format(number))
    api.send(name)
    fail(api, name, "disk full")
    [group] = [one for one in api.get("/v1/errors", queue=name)["groups"] if one["place"]]

    console.open(f"/console/queues/{name}")
    console.page.get_by_role("link", name="Errors", exact=True).last.click()
    expect(console.heading).to_have_text(f"Errors of {name}")
    expect(console.cell(group["id"], "Messages")).to_have_text("3")
    expect(console.row(group["id"])).to_contain_text("shop.PaymentDeclined at shopjobs.py:22")
    console.row(group["id"]).locator("summary").click()
    expect(console.row(group["id"]).locator("pre")).to_contain_text("caused by KeyError")
    console.shoot("errors")

    dialog = console.ask("Retry these 3").expect_count("3 dead messages are affected.")
    command, call = dialog.command(), dialog.call()
    dialog.confirm()
    console.expect_toast("3 of 3 are retried.")
    assert api.counts(name) == {"ready": 3, "dead": 1}
    for _ in range(3):
        fail(api, name, TRACE.format(7))
    assert "3 messages match, 3 redriven" in run_command(command)
    for _ in range(3):
        fail(api, name, TRACE.format(8))
    assert run_call(call)["changed"] == 3
    assert api.counts(other) == {"dead": 1}

    console.open("/console/errors")
    expect(console.cell(group["id"], "Queues")).to_contain_text(other)
