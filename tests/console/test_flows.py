"""Flows and batches: the list, the graph of one, its members, and what operators do."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Locator

from penstock.domain.access.api_key import Role
from tests.clocks import ManualClock
from tests.console.conftest import NewKey, OpenConsole
from tests.console.driver import Console, expect
from tests.console.flows import FlowStory, create
from tests.console.login import log_in
from tests.console.shell import run_call, run_command
from tests.edge.api import Api, a_name, ok
from tests.edge.live import LiveServer

HOSTILE = "<img src=x onerror=\"document.title='owned'\">"


@pytest.fixture
def queue(api: Api) -> str:
    return api.make_queue(max_attempts=1)


@pytest.fixture
def story(api: Api, clock: ManualClock, queue: str) -> FlowStory:
    return FlowStory(api, clock, queue)


def node(console: Console, text: str) -> Locator:
    return console.page.locator(f'[data-node]:has(.node-name:text-is("{text}"))')


def panel(console: Console) -> Locator:
    return console.page.get_by_role("region", name="The selected member")


def open_flow(console: Console, made: dict[str, Any] | str) -> str:
    flow = made if isinstance(made, str) else str(made["flow"]["id"])
    console.open(f"/console/flows/{flow}")
    return flow


def places(console: Console) -> list[list[float]]:
    script = "all => all.map(one => [one.offsetLeft, one.offsetTop])"
    found: list[list[float]] = console.page.locator("[data-node]").evaluate_all(script)
    return found


def test_flows_are_listed_with_their_progress_and_filtered_by_name_and_state(
    console: Console, api: Api, story: FlowStory, queue: str
) -> None:
    running = create(api, queue, [{}, {}])["flow"]
    batch = create(api, queue, [{}], is_open=True)["flow"]
    story.finish()

    console.open("/console/flows")
    expect(console.cell(running["id"], "Flow")).to_have_text(f"{running['name']} running")
    expect(console.cell(running["id"], "Progress")).to_contain_text("1 / 2")
    expect(console.cell(batch["id"], "Flow")).to_have_text(f"{batch['name']} running open")

    console.page.get_by_label("Name", exact=True).fill(batch["name"])
    console.page.get_by_role("button", name="Find").click()
    expect(console.row(running["id"])).to_have_count(0)
    assert console.keys() == [batch["id"]]
    console.page.get_by_label("State", exact=True).select_option("done")
    console.page.get_by_role("button", name="Find").click()
    expect(console.page.locator("main")).to_contain_text("No flow matches.")
    assert console.path == f"/console/flows?name={batch['name']}&state=done"


def test_failing_flows_come_first_until_they_are_redriven(
    console: Console, api: Api, story: FlowStory, queue: str
) -> None:
    failing = create(api, queue, [{"name": "a"}])["flow"]["id"]
    story.finish(act="bury")
    newer = create(api, queue, [{}])["flow"]["id"]

    console.open("/console/flows")
    keys = console.keys()
    assert keys.index(f"failing {failing}") < keys.index(newer)
    console.open("/console/flows?state=failing")
    expect(console.row(failing)).to_be_visible()
    expect(console.row(newer)).to_have_count(0)

    ok(api.call("POST", f"/v1/flows/{failing}/redrive", {}))

    expect(console.row(failing)).to_have_count(0)


def test_the_list_is_updated_while_it_is_open(
    console: Console, api: Api, story: FlowStory, queue: str
) -> None:
    console.open("/console/flows")
    made = create(api, queue, [{}, {}])["flow"]["id"]
    expect(console.cell(made, "Progress")).to_contain_text("0 / 2")

    story.finish()
    story.finish(act="bury")

    expect(console.cell(made, "Progress")).to_contain_text("2 / 2")
    expect(console.row(f"failing {made}")).to_be_visible()


def test_long_lists_have_pages(console: Console, api: Api, queue: str) -> None:
    name = a_name("paged")
    for _ in range(51):
        create(api, queue, [], name=name, is_open=True)

    console.open(f"/console/flows?name={name}")
    assert len(console.keys()) == 50
    console.page.get_by_role("link", name="Next page").click()
    expect(console.page.locator("tr[data-key]")).to_have_count(1)


def test_a_flow_is_a_graph_with_states_times_and_what_it_waits_for(
    console: Console, story: FlowStory
) -> None:
    ids = story.nightly()

    open_flow(console, ids["flow"])

    expect(node(console, "fetch warehouse")).to_have_text("fetch warehousedone · 11 s")
    expect(node(console, "match")).to_have_text("matchdead · 31 s")
    expect(node(console, "load × 24")).to_contain_text("9 / 24")
    expect(node(console, "report")).to_have_text("reportcancelled")
    assert console.page.locator("[data-node]").count() == 10
    expect(console.page.locator(".waits-for").first).to_contain_text(
        "load × 24: 15 in their queues"
    )
    expect(console.page.locator(".waits-for").last).to_contain_text("on_finish: tell waits")
    expect(console.page.locator("path.edge.failed")).to_have_count(1)
    expect(console.page.get_by_role("alert")).to_contain_text("3 of its members failed")
    console.shoot("flow")


def test_a_node_shows_its_times_and_leads_to_its_message_and_back(
    console: Console, story: FlowStory
) -> None:
    ids = story.nightly()
    flow = open_flow(console, ids["flow"])
    expect(panel(console)).to_contain_text("match")  # the first problem is selected

    node(console, "clean").click()

    expect(node(console, "clean")).to_have_attribute("aria-pressed", "true")
    expect(node(console, "match")).to_have_attribute("aria-pressed", "false")
    times = panel(console).locator(".facts")
    expect(times).to_contain_text("Waited for its parents15 s")
    expect(times).to_contain_text("Waited in its queue7 s")
    expect(times).to_contain_text("Ran3 s")
    panel(console).get_by_role("link", name="clean").click()
    expect(console.heading).to_contain_text("clean")
    console.page.get_by_role("link", name="nightly import").click()
    expect(node(console, "clean")).to_be_visible()
    assert console.path == f"/console/flows/{flow}"


def test_a_member_is_redriven_from_its_node(
    console: Console, api: Api, story: FlowStory, queue: str
) -> None:
    members: list[dict[str, Any]] = [{"name": "a"}, {"name": "b"}]
    members.append({"name": "c", "after": ["a", "b"]})
    made = create(api, queue, members)
    story.finish(act="bury")
    story.finish(act="bury")
    flow = open_flow(console, made)

    dialog = console.page.locator(".node-panel").get_by_role("button", name="Redrive")
    dialog.click()
    assert console.dialog.command().startswith(f"penstock flows redrive {flow} --member ")
    console.dialog.confirm()
    console.expect_toast("1 member runs again.")
    expect(node(console, "a")).to_contain_text("in queue")
    expect(node(console, "c")).to_have_text("ccancelled")

    run_command(console.ask("Redrive").command())
    console.dialog.cancel()
    expect(node(console, "c")).to_have_text("cwaits for 2")
    assert api.get(f"/v1/flows/{flow}")["failed"] == 0


def test_a_flow_is_redriven_cancelled_and_closed(
    console: Console, api: Api, story: FlowStory, queue: str
) -> None:
    made = create(api, queue, [{"name": "a"}, {"name": "b"}], is_open=True)
    story.finish(act="bury")
    flow = open_flow(console, made)

    console.ask("Redrive").confirm()
    console.expect_toast("1 member runs again.")
    run_call(console.ask("Close").call())
    console.dialog.confirm()
    console.expect_toast("The flow is closed.")
    expect(console.page.locator('button[data-action="Close"]')).to_have_count(0)
    dialog = console.ask("Cancel").expect_count("2 members are affected.").fill("Reason", "no need")
    run_command(dialog.command())
    dialog.confirm()

    expect(console.heading).to_contain_text("cancelled")
    assert api.get(f"/v1/flows/{flow}")["state"] == "cancelled"
    assert api.message(made["members"][0])["reason"] == "no need"
    expect(console.page.locator("button[data-action]")).to_have_count(0)


def test_the_graph_follows_the_flow_without_a_new_layout(
    console: Console, api: Api, story: FlowStory, queue: str
) -> None:
    made = create(api, queue, [{"name": "a"}, {"name": "b", "after": ["a"]}])
    flow = open_flow(console, made)
    expect(node(console, "b")).to_have_text("bwaits for 1")
    console.page.evaluate("document.querySelectorAll('[data-node]').forEach(n => n.mark = 1)")
    before = places(console)

    story.finish(seconds=5)
    expect(node(console, "a")).to_have_text("adone · 5 s")
    expect(node(console, "b")).to_contain_text("in queue")
    marked = "all => all.every(one => one.mark)"
    assert console.page.locator("[data-node]").evaluate_all(marked)
    assert places(console) == before

    added = {"members": [{"queue": queue, "body": 1, "name": "c", "after": ["a"]}]}
    ok(api.call("POST", f"/v1/flows/{flow}/members", added))
    expect(node(console, "c")).to_contain_text("in queue")
    story.finish()
    story.finish()
    expect(console.heading).to_contain_text("done")


def test_the_graph_is_walked_with_the_keyboard_and_has_a_table(
    console: Console, story: FlowStory
) -> None:
    open_flow(console, story.nightly()["flow"])
    page = console.page
    stops = page.locator('[data-node][tabindex="0"]')
    expect(stops).to_have_count(1)
    stops.focus()

    page.keyboard.press("Home")
    expect(node(console, "fetch shop")).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(node(console, "fetch warehouse")).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(node(console, "clean")).to_be_focused()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("End")
    expect(node(console, "on_finish: tell")).to_be_focused()
    page.keyboard.press("Enter")
    expect(panel(console)).to_contain_text("on_finish: tell")
    label = node(console, "fetch warehouse").get_attribute("aria-label")
    assert label == "fetch warehouse: done; 4 s in its queue, ran 11 s"

    page.get_by_text("The graph as a table").click()
    rows = page.get_by_role("table", name="Nodes of the graph").locator("tr[data-key]")
    expect(rows).to_have_count(10)
    expect(rows.nth(0)).to_contain_text("fetch shop: done")


def test_the_members_of_a_group_are_listed_and_filtered(console: Console, story: FlowStory) -> None:
    ids = story.nightly()
    flow = open_flow(console, ids["flow"])
    node(console, "load × 24").click()
    panel(console).get_by_role("link", name="1 dead").click()

    expect(console.page.locator("tr[data-key]")).to_have_count(1)
    assert console.keys() == [ids["load-05"]]
    assert console.path.startswith(f"/console/flows/{flow}/members?like=")
    console.page.get_by_role("link", name="all", exact=True).click()
    expect(console.page.locator("tr[data-key]")).to_have_count(24)
    expect(console.cell(ids["load-09"], "State")).to_have_text("running")
    expect(console.cell(ids["load-08"], "In queue")).to_have_text("8 s")
    console.page.get_by_role("link", name="Show all members").click()
    expect(console.page.locator("tr[data-key]")).to_have_count(33)
    expect(console.cell(ids["report"], "Reason")).to_have_text("parent_failed")
    console.row(ids["load-05"]).get_by_role("button", name="Redrive").click()
    console.dialog.confirm()
    expect(console.cell(ids["load-05"], "State")).to_have_text("in queue")


def test_ten_thousand_members_are_one_node_and_a_paged_list(
    console: Console, api: Api, queue: str
) -> None:
    made = create(api, queue, [{"kind": "price"} for _ in range(10_000)], is_open=True)

    flow = open_flow(console, made)

    expect(node(console, "price × 10,000")).to_contain_text("0 / 10k")
    assert console.page.locator("[data-node]").count() == 1
    node(console, "price × 10,000").click()
    panel(console).get_by_role("link", name="price × 10,000").click()
    expect(console.page.locator("tr[data-key]")).to_have_count(50)
    console.page.get_by_role("link", name="Next page").click()
    expect(console.row(made["members"][50])).to_be_visible()
    ok(api.call("POST", f"/v1/flows/{flow}/cancel", {}))


def test_a_thousand_nodes_are_shown_small_and_can_be_selected(
    console: Console, api: Api, queue: str
) -> None:
    members = [{"name": f"m{n}", "after": [f"m{n // 2}"] if n else []} for n in range(999)]
    members[1:] = [{**m, "kind": m["name"]} for m in members[1:]]
    made = create(api, queue, members)

    open_flow(console, made)

    expect(console.page.locator("[data-node]")).to_have_count(999)
    expect(console.page.locator(".flow-canvas.small")).to_be_visible()
    last = console.page.locator(f'[data-node="{made["members"][998]}"]')
    last.click()
    expect(panel(console)).to_contain_text("m998")
    expect(panel(console)).to_contain_text("waits")
    unlike = {tuple(place) for place in places(console)}
    assert len(unlike) == 999, "no two nodes are in the same place"
    assert not console.is_too_wide()


def test_a_blocked_member_has_a_page_that_says_what_it_waits_for(
    console: Console, api: Api, queue: str
) -> None:
    made = create(api, queue, [{"name": "a"}, {"name": "b", "kind": "late", "after": ["a"]}])

    console.open(f"/console/messages/{made['members'][1]}")

    expect(console.heading).to_contain_text("late")
    expect(console.page.locator(".notice")).to_contain_text("waits for 1 other member of")
    expect(console.page.locator('[data-step="planned"]')).to_be_visible()
    labels = console.page.locator("button[data-action]").all_inner_texts()
    assert labels == ["Complete", "Cancel"]
    console.ask("Cancel").confirm()
    expect(console.heading).to_contain_text("cancelled")


def test_flows_that_jobs_created_are_linked_both_ways(
    console: Console, api: Api, queue: str
) -> None:
    outer = create(api, queue, [{"name": "split", "kind": "split"}])
    creator = outer["members"][0]
    inner = create(api, queue, [{}], created_by=creator)["flow"]

    open_flow(console, outer)
    node(console, "split").click()
    panel(console).get_by_role("link", name="a flow that it created").click()
    expect(console.heading).to_contain_text(inner["name"])
    console.page.get_by_role("link", name="a job").click()
    expect(console.heading).to_contain_text("split")
    expect(console.page.get_by_role("link", name=inner["name"])).to_be_visible()


@pytest.mark.parametrize("width", [360, 390])
def test_hostile_flows_are_shown_as_text_and_fit_a_phone(
    open_console: OpenConsole, server: LiveServer, api: Api, queue: str, width: int
) -> None:
    members: list[dict[str, Any]] = [{"name": HOSTILE, "kind": HOSTILE}]
    members.append({"name": "x" * 200, "after": [HOSTILE]})
    made = create(api, queue, members, name=HOSTILE)
    flow = made["flow"]["id"]
    phone = open_console(server.url, width=width, scheme="dark")

    for path in ("", f"/{flow}", f"/{flow}/members"):
        phone.open(f"/console/flows{path}")
        expect(phone.page.locator("main")).to_contain_text(HOSTILE)
        assert phone.page.locator("main img").count() == 0
        assert not phone.is_too_wide(), path
    ok(api.call("POST", f"/v1/flows/{flow}/cancel", {}))


def test_a_reader_cannot_change_a_flow(
    server_with_keys: LiveServer, open_console: OpenConsole, new_key: NewKey
) -> None:
    api = Api(server_with_keys.url, key=new_key())
    queue = api.make_queue(max_attempts=1)
    made = create(api, queue, [{"name": "a"}, {}], is_open=True)
    ok(api.act(api.claim_one(queue)["receipt"], "bury"))
    reader = log_in(open_console, server_with_keys.url, new_key(Role.READ))

    open_flow(reader, made)

    for button in reader.page.locator("button[data-action]").all():
        expect(button).to_be_disabled()
    assert reader.page.locator("button[data-action]").count() == 4
