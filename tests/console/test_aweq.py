"""AweQ's four views: the walkthrough of its documentation, click by click."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator

import pytest

from tests.clocks import ManualClock
from tests.console.driver import Console, expect
from tests.edge.api import Api
from tests.support.programs import need

UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"


class Aweq:
    def __init__(self, console: Console) -> None:
        self.console = console
        self.page = console.page
        self.answer = self.page.locator(".aweq-answer")

    def send(self, text: str) -> str:
        self.console.open("/console/aweq/send-message")
        self.page.get_by_label("Queue Message").fill(text)
        self.page.get_by_role("button", name="Send Message", exact=True).click()
        expect(self.answer).to_have_text(re.compile(f'^Message "{UUID}" posted to queue\\.\\.\\.$'))
        found = re.search(UUID, self.answer.inner_text())
        assert found is not None
        return found[0]

    def receive(self, count: int) -> dict:
        self.console.open("/console/aweq/receive-message")
        self.page.get_by_label("Batch Size").fill(str(count))
        self.page.get_by_role("button", name="Receive Message", exact=True).click()
        return self.printed("Messages from the Queue...")

    def delete(self, key: str) -> str:
        self.console.open("/console/aweq/delete-message")
        self.page.get_by_label("Message Key").fill(key)
        self.page.get_by_role("button", name="Delete Message", exact=True).click()
        expect(self.answer).not_to_be_empty()
        return self.answer.inner_text()

    def stats(self) -> dict:
        self.console.open("/console/aweq/get-stats")
        expect(self.console.heading).to_have_text("Queue Status")
        self.page.get_by_role("button", name="Check Stats").click()
        return dict(self.printed("Stats for the Queue...")["stats"])

    def printed(self, line: str) -> dict:
        expect(self.answer.locator("p")).to_have_text(line)
        text = self.answer.locator("pre").inner_text()
        answer = json.loads(text)
        assert text == json.dumps(answer, indent=4), "as AweQ's document prints it"
        return dict(answer)


@pytest.fixture
def aweq(console: Console, api: Api) -> Iterator[Aweq]:
    api.call("DELETE", "/v1/queues/aweq", params={"force": "true"})
    yield Aweq(console)
    api.call("DELETE", "/v1/queues/aweq", params={"force": "true"})


def texts(batch: dict) -> list[str]:
    return [message["message"] for message in batch["messages"]]


def test_the_walkthrough_of_aweqs_documentation_works(aweq: Aweq, clock: ManualClock) -> None:
    jobs = [f"job-details-{number:02}" for number in range(1, 8)]

    keys = [aweq.send(job) for job in jobs]
    aweq.console.shoot("send-message")
    assert len(set(keys)) == 7
    assert aweq.stats() == {
        "queue_length": 7,
        "checkouts_count": 0,
        "checkout_lifetime": "120s",
        "rescue_interval": "2s",
    }
    aweq.console.shoot("get-stats")

    batches = [aweq.receive(3) for _ in range(3)]
    aweq.console.shoot("receive-message")
    assert [texts(batch) for batch in batches] == [jobs[:3], jobs[3:6], jobs[6:]]
    assert [batch["message"] for batch in batches] == [
        "Requested batch-size available.",
        "Requested batch-size available.",
        "Fewer messages available than requested.",
    ]
    assert aweq.receive(1)["message"] == "No messages available in queue."
    counts = aweq.stats()
    assert (counts["queue_length"], counts["checkouts_count"]) == (0, 7)

    clock.advance(seconds=121)
    assert aweq.stats()["queue_length"] == 7
    again = aweq.receive(3)
    assert [message["retry_count"] for message in again["messages"]] == [1, 1, 1]

    key = aweq.receive(1)["messages"][0]["key"]
    assert aweq.delete(key) == f'Message "{key}" deleted...'
    aweq.console.shoot("delete-message")
    counts = aweq.stats()
    assert counts["queue_length"] + counts["checkouts_count"] == 6


def test_a_message_without_content_is_refused_in_aweqs_words(aweq: Aweq) -> None:
    aweq.console.open("/console/aweq/send-message")
    aweq.page.get_by_label("Queue Message").evaluate("input => input.required = false")

    aweq.page.get_by_role("button", name="Send Message", exact=True).click()

    expect(aweq.answer).to_have_text("Message content required.")
    aweq.console.forgive("400 (Bad Request)")


def test_a_key_that_is_not_leased_deletes_nothing_and_is_reported(aweq: Aweq) -> None:
    key = aweq.send("job-details-01")

    assert "nothing was deleted" in aweq.delete(key)
    assert aweq.stats()["queue_length"] == 1


def test_the_content_of_a_message_is_shown_and_never_executed(aweq: Aweq, api: Api) -> None:
    hostile = "<img src=x onerror=\"document.title='caught'\"><script>caught=1</script>"
    aweq.send(hostile)
    api.call("POST", "/send-message", {"message": {hostile: 12345678901234567890}})

    batch = aweq.receive(2)

    assert texts(batch) == [hostile, {hostile: 12345678901234567890}]
    assert aweq.page.locator(".aweq-answer img, .aweq-answer script").count() == 0
    assert aweq.page.title() != "caught"


def test_the_shown_command_does_the_same(aweq: Aweq) -> None:
    need("curl")
    aweq.console.open("/console/aweq/send-message")
    aweq.page.get_by_label("Queue Message").fill("it's $HOME")
    aweq.page.get_by_text("Do the same from a shell").click()
    command = aweq.page.locator('[data-form="HTTP API"] code').inner_text()

    answer = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)

    assert json.loads(answer.stdout)["status"] == "okay"
    assert texts(aweq.receive(1)) == ["it's $HOME"]


def test_its_pages_are_in_the_menu_once_it_was_used(console: Console, api: Api) -> None:
    api.call("DELETE", "/v1/queues/aweq", params={"force": "true"})
    menu = console.page.locator("details.nav-group")
    console.open("/console/queues")
    expect(menu).to_be_hidden()

    api.call("PUT", "/v1/queues/aweq")
    console.page.reload()

    expect(menu).to_be_visible()
    expect(console.page.get_by_role("link", name="Queue Status")).to_be_hidden()
    menu.locator("summary").click()
    console.page.get_by_role("link", name="Queue Status").click()
    expect(console.heading).to_have_text("Queue Status")
    api.call("DELETE", "/v1/queues/aweq", params={"force": "true"})
