"""One search for everything that has a page."""

from __future__ import annotations

import pytest

from tests.console.driver import Console, expect
from tests.edge.api import Api, a_name, ok


def search(console: Console, text: str) -> None:
    console.page.keyboard.press("Control+k")
    console.page.get_by_role("combobox", name="Search").fill(text)


def test_queues_schedules_workers_topics_tags_and_pages_are_found(
    console: Console, api: Api
) -> None:
    word = a_name("needle")
    queue = api.make_queue(f"{word}.queue")
    ok(api.call("PUT", f"/v1/recurring/{word}-nightly", {"queue": queue, "every_ms": 60_000}))
    ok(api.call("POST", "/v1/workers", {"name": f"{word}-app", "host": "web-1", "pid": 7}))
    ok(api.call("PUT", f"/v1/topics/{word}-events"))
    api.send(queue, tags=[word])
    console.open("/console/workers")

    search(console, word)

    options = console.page.get_by_role("option")
    expect(options).to_have_count(5)
    text = " ".join(options.all_inner_texts())
    for found in (queue, f"{word}-nightly", "worker on web-1 (7)", f"{word}-events", "tag"):
        assert found in text
    console.shoot("search")
    console.page.get_by_role("option", name=f"{word}-nightly").click()
    expect(console.heading).to_contain_text(f"{word}-nightly")

    search(console, "recurr")
    expect(console.page.get_by_role("option")).to_have_count(1)
    console.page.keyboard.press("Enter")
    expect(console.heading).to_have_text("Recurring")


@pytest.mark.parametrize("is_quick", [True, False])
def test_a_pasted_message_id_opens_the_message(console: Console, api: Api, is_quick: bool) -> None:
    message = api.send(api.make_queue())
    console.open("/console/queues")

    search(console, message)
    if not is_quick:
        expect(console.page.get_by_role("option", name=f"{message} message")).to_be_visible()
    console.page.keyboard.press("Enter")

    expect(console.page.locator(".page-head code")).to_have_text(message)
