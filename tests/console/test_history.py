"""History: searching finished messages."""

from __future__ import annotations

from tests.clocks import ManualClock
from tests.console.conftest import OpenConsole
from tests.console.driver import Console, expect
from tests.edge.api import Api, a_name
from tests.edge.live import LiveServer

HOSTILE = "<img src=x onerror=\"document.title='owned'\">"


def shown(console: Console) -> list[str]:
    listed = console.keys()
    return [key.split("/")[0] for key in listed]


def find(console: Console, count: int) -> list[str]:
    console.page.get_by_role("button", name="Find").click()
    expect(console.page.locator("tr[data-key]")).to_have_count(count)
    return shown(console)


def test_finished_messages_are_listed_newest_first_with_outcome_and_reason(
    console: Console, api: Api
) -> None:
    queue = api.make_queue()
    done = api.finish(queue, kind="welcome")
    dead = api.die(queue)

    console.open(f"/console/history?queue={queue}")

    assert shown(console) == [dead, done]
    rows = console.page.locator("tr[data-key]")
    expect(rows.nth(0).locator('[data-label="Outcome"]')).to_have_text("dead")
    expect(rows.nth(0).locator('[data-label="Why"]')).to_have_text("broken")
    expect(rows.nth(1).locator('[data-label="Message"]')).to_contain_text("welcome")
    console.shoot("history")
    rows.nth(1).get_by_role("link").first.click()
    expect(console.page.locator('[data-step="done"]')).to_be_visible()


def test_history_is_searched_by_all_its_filters(
    console: Console, api: Api, clock: ManualClock
) -> None:
    queue, tag = api.make_queue(), a_name("tag")
    early = api.finish(queue, kind="k", tags=[tag], entity_id="e")
    clock.advance(hours=2)
    late = api.die(queue, kind="other")
    [ending, _] = api.get("/v1/history", queue=queue)["endings"]
    at = ending["finished_at"][:19]

    console.open(f"/console/history?queue={queue}")
    for label, value in (("Kind", "k"), ("Tag", tag), ("About (entity id)", "e")):
        console.page.get_by_label(label, exact=True).fill(value)
        assert find(console, 1) == [early]
        console.open(f"/console/history?queue={queue}")
    console.page.get_by_label("Outcome").select_option("dead")
    assert find(console, 1) == [late]
    assert "outcome=dead" in console.path
    console.open(f"/console/history?queue={queue}")
    console.page.get_by_label("Finished from").fill(at)
    assert find(console, 1) == [late]
    console.open(f"/console/history?queue={queue}")
    console.page.get_by_label("Finished before").fill(at)
    assert find(console, 1) == [early]
    console.page.reload()
    expect(console.page.locator("tr[data-key]")).to_have_count(1)
    console.open(f"/console/history?queue={queue}&kind=nothing")
    expect(console.page.locator("tr.empty")).to_contain_text("No finished message matches")


def test_long_history_is_paged(console: Console, api: Api) -> None:
    queue = api.make_queue()
    ids = [api.finish(queue) for _ in range(55)]
    console.open(f"/console/history?queue={queue}")

    first = shown(console)
    console.page.get_by_role("link", name="Next page").click()
    expect(console.page.locator("tr[data-key]")).to_have_count(5)

    assert first + shown(console) == ids[::-1]


def test_a_hostile_row_is_shown_as_text_and_fits_a_phone(
    open_console: OpenConsole, server: LiveServer, api: Api
) -> None:
    queue = api.make_queue()
    api.die(queue, kind=HOSTILE, body=HOSTILE)
    phone = open_console(server.url, width=360, scheme="dark")

    phone.open(f"/console/history?queue={queue}")

    expect(phone.page.locator("tr[data-key]")).to_contain_text(HOSTILE)
    assert phone.page.locator("main img").count() == 0
    assert not phone.is_too_wide()
