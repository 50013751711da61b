"""The list of queues: search, paging, live updates, keyboard."""

from __future__ import annotations

from penstock.domain.queue.queue import QueueSettings
from penstock.ports.store import Session
from tests.console.conftest import run_in_thread
from tests.console.driver import Console, expect
from tests.edge.api import Api, a_name
from tests.edge.live import LiveServer


def test_queues_are_listed_with_their_counts(console: Console, api: Api) -> None:
    name = api.make_queue("list")
    api.send(name)
    api.send(name, delay_ms=60_000)
    api.die(name)

    console.open(f"/console/queues?contains={name}")

    expect(console.cell(name, "Ready")).to_have_text("1")
    expect(console.cell(name, "Waiting")).to_have_text("1")
    expect(console.cell(name, "Leased")).to_have_text("0")
    expect(console.cell(name, "Dead")).to_have_text("1")
    console.shoot("queues")


def test_a_search_finds_part_of_a_name_and_has_a_url(console: Console, api: Api) -> None:
    part = a_name("Mid")
    names = [f"a-{part}", f"b-{part}-x"]
    for name in (*names, f"c-{a_name()}"):
        api.call("PUT", f"/v1/queues/{name}")
    console.open("/console/queues")

    console.page.get_by_label("Part of a name").fill(part.lower())
    console.page.get_by_role("button", name="Find").click()
    expect(console.page.locator("tr[data-key]")).to_have_count(2)
    console.page.reload()

    assert console.path == f"/console/queues?contains={part.lower()}"
    expect(console.page.locator("tr[data-key]")).to_have_count(2)
    assert console.keys() == names


def test_many_queues_are_paged(console: Console, api: Api) -> None:
    part = a_name("many")
    names = [f"{part}-{number:03}" for number in range(101)]
    for name in names:
        api.call("PUT", f"/v1/queues/{name}")
    console.open(f"/console/queues?contains={part}")

    assert console.keys() == names[:50]
    console.page.get_by_role("link", name="Next page").click()
    expect(console.row(names[50])).to_be_visible()
    assert console.keys() == names[50:100]
    console.page.get_by_role("link", name="Next page").click()
    expect(console.row(names[100])).to_be_visible()
    assert console.keys() == names[100:]

    console.page.go_back()
    expect(console.row(names[50])).to_be_visible()
    console.page.get_by_role("link", name="First page").click()
    expect(console.row(names[0])).to_be_visible()


def test_counts_are_updated_live(console: Console, api: Api) -> None:
    name = api.make_queue("live")
    console.open(f"/console/queues?contains={name}")
    expect(console.page.locator(".live")).to_have_attribute("data-state", "live")

    api.send(name)
    expect(console.cell(name, "Ready")).to_have_text("1")
    api.claim_one(name)
    expect(console.cell(name, "Leased")).to_have_text("1")


def test_the_list_works_with_the_keyboard_alone(console: Console, api: Api) -> None:
    part = a_name("keys")
    for letter in "abc":
        api.call("PUT", f"/v1/queues/{part}.{letter}")
    page = console.open("/console/aweq/get-stats")

    page.evaluate(  # at once: the first key times out
        """() => ["g", "q"].forEach((key) =>
            document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true })))"""
    )
    expect(console.heading).to_have_text("Queues")
    page.keyboard.press("/")
    page.keyboard.type(part)
    page.keyboard.press("Enter")
    expect(page.locator("tr[data-key]")).to_have_count(3)
    console.row(f"{part}.a").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")

    expect(console.heading).to_contain_text(f"{part}.b")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("Search for a queue")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_ten_thousand_queues_are_searched_and_paged_quickly(
    console: Console, api: Api, server: LiveServer
) -> None:
    part = a_name("ten-thousand")
    names = [f"{part}.{number:05}" for number in range(10_000)]

    def make(session: Session) -> None:
        for name in names:
            session.queues.add(name, QueueSettings(), now=server.clock.now())

    run_in_thread(lambda: server.broker.store.write(make).result())
    for name in names[::1000]:
        api.die(name)

    console.open(f"/console/queues?contains={part}")
    assert console.keys() == names[:50]
    console.open(f"/console/queues?contains={part}&cursor={names[9_979]}")
    assert console.keys() == names[9_980:]
    console.page.keyboard.press("/")
    console.page.keyboard.type(f"{part}.04242")
    console.page.keyboard.press("Enter")
    expect(console.page.locator("tr[data-key]")).to_have_count(1)
    console.open("/console")
    expect(console.page.locator("tr[data-key]")).to_have_count(10)
    for name in names[::1000]:
        api.call("POST", f"/v1/queues/{name}/purge")
