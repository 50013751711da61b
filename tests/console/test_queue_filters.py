"""The list of queues: filters, order, acts on several, names that are taken, kinds of problems."""

from __future__ import annotations

import pytest

from tests.console.driver import Console, expect
from tests.console.shell import run_call, run_command
from tests.edge.api import Api, a_name


def test_queues_are_filtered_sorted_selected_and_paused(console: Console, api: Api) -> None:
    team = a_name("team")
    calm, busy, broken = (
        api.make_queue(start, labels={"team": team}) for start in ("calm", "busy", "broken")
    )
    for _ in range(3):
        api.send(busy)
    api.die(broken)
    page = console.open(f"/console/queues?label=team={team}")
    assert console.keys() == sorted([calm, busy, broken])

    page.get_by_role("link", name="Ready").click()
    expect(page.locator('th[aria-sort="descending"]')).to_have_text("Ready ↓")
    assert console.keys()[0] == busy
    page.get_by_role("link", name="Ready").click()
    expect(page.locator('th[aria-sort="ascending"]')).to_have_text("Ready ↑")
    assert console.keys()[-1] == busy
    page.get_by_label("Problem").select_option("dead")
    page.get_by_role("button", name="Find").click()
    expect(page.locator("tr[data-key]")).to_have_count(1)
    assert console.keys() == [broken]
    page.get_by_label("Problem").select_option("")
    page.get_by_role("button", name="Find").click()
    expect(console.row(calm)).to_be_visible()

    for name in (calm, busy):
        page.get_by_label(f"Select {name}").check()
    dialog = console.ask("Pause").expect_count("2 queues are affected.")
    commands, calls = dialog.command(), dialog.call()
    dialog.confirm()
    console.expect_toast("2 queues paused.")
    expect(console.row(calm)).to_contain_text("paused")
    assert [api.queue(name)["is_paused"] for name in (calm, busy, broken)] == [True, True, False]
    for name in (calm, busy):
        api.call("POST", f"/v1/queues/{name}/resume")
    for command in commands.splitlines():
        run_command(command)
    assert api.queue(busy)["is_paused"]
    assert calls.count("curl") == 2


def test_a_new_queue_with_the_name_of_another_leaves_that_one_as_it_is(
    console: Console, api: Api
) -> None:
    name = api.make_queue("taken", max_attempts=3, labels={"team": "x"})
    before = api.queue(name)
    console.open("/console/queues")
    dialog = console.ask("New queue").fill("Name", name)
    call = dialog.call()

    dialog.try_to_confirm()

    dialog.expect_problem("already exists")
    with pytest.raises(AssertionError, match="queue_exists"):
        run_call(call)
    assert api.queue(name) == before
    console.overlook("409")
    dialog.box.get_by_role("link", name=f"Open {name}").click()
    expect(console.heading).to_contain_text(name)
    expect(dialog.box).to_have_count(0)


def test_each_kind_of_problem_leads_to_all_queues_that_have_it(console: Console, api: Api) -> None:
    names = [api.make_queue("dying") for _ in range(12)]
    for name in names:
        api.die(name)
    page = console.open("/console")
    kind = page.locator('[data-kind="dead"]')
    expect(kind).to_contain_text("dead messages: ")
    known = api.get("/v1/problems")["queues_by_problem"]["dead"]

    kind.click()

    expect(console.row(names[0])).to_be_visible()
    assert known >= 12
    assert console.path == "/console/queues?problem=dead"
    for name in names:
        api.call("POST", f"/v1/queues/{name}/purge")


def test_a_list_says_how_old_it_is_and_is_refreshed(console: Console, api: Api) -> None:
    name = api.make_queue("aging")
    page = console.open(f"/console/messages?queue={name}")
    expect(page.locator(".as-of")).to_contain_text("As of ")
    assert console.keys() == []

    sent = api.send(name)
    page.get_by_role("button", name="Refresh").click()

    expect(console.row(sent)).to_be_visible()
