"""A server that does not answer: the console reports it, and recovers by itself."""

from __future__ import annotations

from penstock.domain.access.api_key import Role
from tests.console.conftest import NewKey, OpenConsole
from tests.console.driver import Console, expect
from tests.console.login import log_in
from tests.edge.api import Api
from tests.edge.live import LiveServer


def test_a_bar_reports_a_server_that_does_not_answer_until_it_does(console: Console) -> None:
    page = console.page
    page.route("**/v1/live", lambda route: route.abort())
    console.open("/console/queues")
    page.goto("/console")

    bar = page.locator(".connection")
    expect(bar).to_contain_text("The server has not answered; reconnecting.")
    expect(page.locator("body.stale")).to_be_attached()
    expect(page.locator(".live")).to_have_text("no connection")
    page.unroute("**/v1/live")

    expect(bar).to_be_hidden()
    expect(page.locator(".live")).to_have_text("live")
    expect(page.locator("body.stale")).to_have_count(0)
    console.overlook("ERR_")


def test_a_page_that_could_not_be_loaded_is_loaded_again(console: Console, api: Api) -> None:
    name = api.make_queue()
    page = console.page
    page.route(f"**/v1/queues/{name}", lambda route: route.abort())
    console.open(f"/console/queues/{name}")
    expect(console.heading).to_have_text("Something went wrong")
    page.get_by_role("button", name="Retry").click()
    expect(console.heading).to_have_text("Something went wrong")

    page.unroute(f"**/v1/queues/{name}")

    expect(console.heading).to_contain_text(name)
    console.overlook("ERR_")


def test_there_is_no_all_clear_without_an_answer(
    server_with_keys: LiveServer, open_console: OpenConsole, new_key: NewKey
) -> None:
    console = log_in(open_console, server_with_keys.url, new_key(Role.PRODUCE))

    console.open("/console")

    problems = console.page.locator(".problem-list")
    expect(problems).to_contain_text("Unknown: ")
    expect(problems).not_to_contain_text("No problems.")
    expect(console.page.locator(".connection")).to_be_hidden()
    console.overlook("403")


def test_the_overview_says_so_when_its_problems_are_not_up_to_date(
    console: Console, api: Api
) -> None:
    queue = api.make_queue()
    api.die(queue)
    page = console.page
    console.open("/console")
    problems = page.locator(".problem-list")
    expect(problems.locator("tr[data-key]").first).to_be_visible()

    page.route("**/v1/problems*", lambda route: route.abort())
    expect(problems).to_contain_text("Not up to date: The server does not respond.")
    expect(problems.locator("tr[data-key]").first).to_be_visible()
    page.unroute("**/v1/problems*")

    expect(problems).not_to_contain_text("Not up to date")
    console.overlook("ERR_")
